#!/bin/bash
# All C is as clang-format writes it. Other versions than Debian 12's (14) differ: skipped there.
cd "$1" || exit 1
tool=$(command -v clang-format-14 || command -v clang-format) || { echo "skipped: no clang-format"; exit 77; }
case $("$tool" --version) in
*"version 14."*) ;;
*) echo "skipped: clang-format 14 wanted, this is $("$tool" --version)"; exit 77 ;;
esac
find proto psd worker tests -name '*.[ch]' -print0 | xargs -0 -r "$tool" --dry-run -Werror
