# packages.sh - the one list of Debian packages, read by deploy/quickstart.sh and tests/run.sh.
# To be sourced by bash. Nothing is touched when all packages are there; sudo only when not root.

# To build and to run.
packages_build=(
    build-essential cmake ninja-build pkg-config
    libzmq3-dev libmsgpack-dev libsystemd-dev libopenblas-dev libinih-dev libjansson-dev
    libxxhash-dev zlib1g-dev uthash-dev librandom123-dev
)
# To test as well.
packages_test=(
    libcriterion-dev clang-format clang-tidy mandoc binutils gnuplot-nox locales
    mmdebstrap systemd-container ccache
    python3 python3-zmq python3-msgpack python3-numpy
)
# To be compared with, by tests/run.sh --slow and tests/bench/compare_peers.py; large, and what needs them is skipped
# without them.
packages_peers=(python3-torch python3-sklearn openmpi-bin libopenmpi-dev)
# Looks at the Debian packages, in tests/run.sh --slow.
packages_slow=(lintian)
# The real data set (IDX files under /usr/share/datasets/fashion-mnist).
packages_data=(dataset-fashion-mnist)

# packages_missing NAME...: those that are not installed.
packages_missing()
{
    local name
    for name; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] ||
            printf '%s\n' "$name"
    done
}

packages_as_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "error: not root and there is no sudo; as root, run: $*" >&2
        return 1
    fi
}

# packages_update: apt's lists, once for all that is installed by this shell.
packages_updated=false
packages_update()
{
    $packages_updated || packages_as_root apt-get update -q || return
    packages_updated=true
}

# packages_install NAME...: what is missing of them. 1 with one line on stderr when that fails.
packages_install()
{
    local missing log
    mapfile -t missing < <(packages_missing "$@")
    [ ${#missing[@]} -eq 0 ] && return 0
    if ! command -v apt-get >/dev/null; then
        echo "error: no apt-get here; install the equivalents of: ${missing[*]}" >&2
        return 1
    fi
    echo "installing ${missing[*]}"
    log=$(mktemp) || return 1
    if ! { packages_update && packages_as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
        grep -E '^(E:|error:)' "$log" >&2
        echo "error: could not install ${missing[*]} with apt-get (all output: $log)" >&2
        return 1
    fi
    rm -f "$log"
}
