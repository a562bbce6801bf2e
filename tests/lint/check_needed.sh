#!/bin/bash
# psd links no BLAS: it runs on hosts that compute nothing.
needed=$(readelf -d "$1" | grep NEEDED) || { echo "$1: no dynamic section"; exit 1; }
if grep -iE 'blas|lapack' <<<"$needed"; then
    echo "$1 links a BLAS library"
    exit 1
fi
