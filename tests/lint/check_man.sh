#!/bin/bash
# Manual pages without a warning.
cd "$1" || exit 1
command -v mandoc >/dev/null || { echo "skipped: no mandoc"; exit 77; }
pages=$(find man -name '*.[1-8]')
[ -n "$pages" ] || { echo "no manual pages"; exit 1; }
mandoc -T lint -W warning $pages
