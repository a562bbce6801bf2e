#!/bin/bash
# libdtworker.so exports exactly what libdtworker.symbols lists, and that is what dtworker.h declares.
library=$1 header=$2
list=$(dirname "$0")/libdtworker.symbols
exported=$(nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//' |
    grep -Ev '^__(asan|odr_asan|ubsan|tsan|sanitizer|gcov)' | LC_ALL=C sort)
declared=$(tr '\n' ' ' <"$header" | grep -oE 'DTW_API [^;(]*\(' | grep -oE 'dtw_[a-z_]+ *\($' |
    tr -d ' (' | LC_ALL=C sort)
diff -u "$list" <(echo "$exported") || { echo "exported symbols differ from $list"; exit 1; }
diff -u "$list" <(echo "$declared") || { echo "dtworker.h differs from $list"; exit 1; }
