#!/bin/bash
# clang-tidy with the checks of .clang-tidy over every source of the build. A file whose text (with
# its headers and the checks) was found good before is not looked at again.
# PSD_TIDY_NODES: how many states of a function the analyzer follows, most of the time that is spent here. A third of
# its own 225000 takes three quarters of the time, and found 173 of 174 seeded uses after free; tests/run.sh --slow
# follows them all.
source=$1 build=$2
tool=$(command -v clang-tidy-14 || command -v clang-tidy) || { echo "skipped: no clang-tidy"; exit 77; }
[ -f "$build/compile_commands.json" ] || { echo "no $build/compile_commands.json"; exit 1; }
cache=$build/tidy-good
nodes=${PSD_TIDY_NODES:-75000}
mkdir -p "$cache" || exit 1
cd "$source" || exit 1
source=$PWD
headers=$(echo "$nodes"; cat .clang-tidy tests/lint/check_tidy.sh tests/lint/analyzer.h $(find proto psd worker -name '*.h' | LC_ALL=C sort) | sha256sum)

check_one()
{
    local file=$1 key log limit hint=(--extra-arg=-include --extra-arg="$source/tests/lint/analyzer.h")
    [ "$file" = proto/base/error.c ] && hint=()
    key=$( (echo "$headers"; cat "$file") | sha256sum | cut -d' ' -f1)
    [ -e "$cache/$key" ] && return 0
    limit=(--extra-arg={-Xclang,-analyzer-config,-Xclang,"max-nodes=$nodes"})
    log=$("$tool" --quiet "${hint[@]}" "${limit[@]}" -p "$build" "$file" 2>/dev/null) && { touch "$cache/$key"; return 0; }
    echo "$log"
    return 1
}
export -f check_one
export headers cache tool build source nodes
find proto psd worker -name '*.c' ! -path 'worker/examples/*' -print0 |
    xargs -0 -r -n 1 -P "$(nproc)" bash -c 'check_one "$0"'
