#!/bin/bash
# run.sh - set up what the tests need, build, test.
#
#   tests/run.sh [--fast | --slow] [--preset asan|release] [--no-build] [ctest options]
#
# All tests run from the build with sanitizers; those that train at length use the release binaries.
#   --fast      without the tests labelled slow, from the release build (under a minute once built)
#   --slow      the tests labelled slow alone, whole: lintian looks at the packages, a fresh Debian passes --fast (not
#               a slice of it), clang-tidy's analyzer follows all its states (else a third), and PyTorch, scikit-learn
#               and OpenMPI are compared with
#   --preset    run everything from this build (it alone is built)
#   --no-build  neither packages nor build: what is there is tested
# The test fresh runs this script once more in a clone in a Debian that has nothing yet: all is installed and built
# there, and a few tests are run that need what was installed. PSD_FRESH has other options for that, as in
# PSD_FRESH='--fast -R lint'; PSD_FRESH=all is the whole suite there.
# Builds share the compiler cache (ccache): what one has compiled the next ones need not.
# Anything else goes to ctest, e.g. -R system. The last line is ctest's closing line; the exit code is ctest's.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || exit 1
. "$root/deploy/packages.sh" || exit 1

preset=
fast=false
slow=false
filter=()
prepare=true
rest=()
while [ $# -gt 0 ]; do
    case $1 in
    --fast) fast=true filter=(-LE slow) ;;
    --slow)
        slow=true filter=(-L slow -C peers)
        PSD_FRESH=${PSD_FRESH:---fast} PSD_TIDY_NODES=${PSD_TIDY_NODES:-225000}
        ;;
    --no-build) prepare=false ;;
    --preset)
        [ $# -gt 1 ] || { echo "error: --preset needs a name" >&2; exit 64; }
        shift
        preset=$1
        ;;
    -h | --help)
        sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
    *) rest+=("$1") ;;
    esac
    shift
done

slow_bin=(-DPSD_SLOW_BIN_DIR=)
if [ -n "$preset" ]; then
    presets=("$preset")
elif $fast; then
    preset=release presets=(release)
else
    preset=asan presets=(release asan)
    slow_bin=(-DPSD_SLOW_BIN_DIR="$root/build/release/bin")
fi

build()
{
    local name=$1 log=$root/build/$1.log

    echo "== build $name"
    mkdir -p "$root/build"
    if ! { cmake -S "$root" --preset "$name" "${slow_bin[@]}" && cmake --build "$root/build/$name"; } \
        >"$log" 2>&1; then
        tail -n 60 "$log"
        echo "error: the build $name failed (all output: $log)" >&2
        exit 1
    fi
}

cd "$root" || exit 1
if $prepare; then
    packages_install "${packages_build[@]}" "${packages_test[@]}" || exit 1
    packages_install "${packages_data[@]}" ||
        echo "The tests on ${packages_data[*]} will be skipped."
    if $slow; then
        packages_install "${packages_slow[@]}" ||
            echo "What needs ${packages_slow[*]} will be skipped."
        packages_install "${packages_peers[@]}" ||
            echo "The tests with ${packages_peers[*]} will be skipped."
    fi
    command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache
    for name in "${presets[@]}"; do
        build "$name"
    done
fi

echo "== test"
export CTEST_OUTPUT_ON_FAILURE=1 PSD_FRESH PSD_TIDY_NODES
log=$root/build/$preset/ctest.log
ctest --test-dir "$root/build/$preset" -j $(($(nproc) * 2)) --no-label-summary --no-tests=error "${filter[@]}" "${rest[@]}" |
    tee "$log"
code=${PIPESTATUS[0]}
grep -h 'skipped: ' "$root/build/$preset/Testing/Temporary/LastTest.log"
closing=$(grep -E '^[0-9]+% tests passed' "$log" | tail -n 1)
echo "${closing:-no tests were found}"
exit "$code"
