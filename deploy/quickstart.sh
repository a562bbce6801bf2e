#!/bin/bash
# quickstart.sh - from a fresh clone on Debian 12 to a trained model, without a question.
# Installs what is missing, builds, trains softmax regression on Fashion-MNIST with one psd and two
# dtworkers on this machine, stops everything.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || exit 1
build=$root/build/release
data=/usr/share/datasets/fashion-mnist
. "$root/deploy/packages.sh" || exit 1

fail()
{
    echo "error: $*" >&2
    exit 1
}

step()
{
    echo "== $*"
}

# run_quietly LOG COMMAND...: its output is shown only when it fails.
run_quietly()
{
    local log=$1
    shift
    "$@" >"$log" 2>&1 && return
    tail -n 30 "$log" >&2
    fail "$1 failed (all output: $log)"
}

step "packages"
packages_install "${packages_build[@]}" || exit 1
[ -d "$data" ] || packages_install "${packages_data[@]}"
if [ ! -d "$data" ]; then
    data=$root/tests/data
    echo "The package ${packages_data[*]} cannot be had: training on the 1 797 hand-written digits"
    echo "of tests/data (UCI, CC BY 4.0) instead."
fi

step "build"
mkdir -p "$build" || fail "cannot create $build"
run_quietly "$build/configure.log" cmake -S "$root" -B "$build" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DPSD_TESTS=OFF
run_quietly "$build/build.log" cmake --build "$build"
[ -x "$build/bin/dtworker" ] || fail "the build made no $build/bin/dtworker"

step "train: one psd, two dtworkers, synchronous SGD, on $data"
"$build/bin/dtworker" run --ps-tasks 1 --workers 2 --algorithm ssgd --model softmax \
    --data "$data" --epochs 5 --batch 100 --lr 0.1 || exit

cat <<END

What to try next, in $root:
  build/release/bin/dtworker run --workers 4 --algorithm ssgd --aggregate 3 --model softmax --data $data --epochs 5 --lr 0.1
  build/release/bin/psd --listen tcp://127.0.0.1:2222    and, in other terminals, dtworker train --ps tcp://127.0.0.1:2222 (README.md)
  man -l man/psd-protocol.7    and worker/examples: a worker of your own in C or Python
END
