"""The layers of the source tree: includes point downwards only, and each foreign library is named in
its one place. Comments do not count."""
import os
import re
import sys

# A folder may include itself and these.
BELOW = {
    "proto/base": [],
    "proto/wire": ["proto/base"],
    "proto/net": ["proto/base", "proto/wire"],
    "psd/optim": ["proto/base"],
    "psd/store": ["proto/base", "proto/wire", "psd/optim"],
    "psd/serve": ["proto/base", "proto/wire", "psd/optim", "psd/store"],
    "psd/daemon": ["proto/base", "proto/wire", "proto/net", "psd/optim", "psd/store", "psd/serve"],
    "worker/lib": ["proto/base", "proto/wire", "proto/net"],
    "worker/train": ["proto/base", "proto/wire", "psd/optim", "psd/store", "worker/lib"],
    "worker/cli": ["proto/base", "proto/wire", "proto/net", "psd/optim", "worker/lib", "worker/train"],
    "worker/examples": [],  # what a user has: the installed header only
}

# A name, and the files that may use it.
PLACES = [
    (r"\bzmq_\w+|\bZMQ_\w+|<zmq\.h>", r"proto/net/.*"),
    (r"\bmsgpack_\w+|<msgpack", r"proto/wire/writer\.c"),
    (r"\bcblas_\w+|\bopenblas_\w+|<cblas", r"worker/train/model\w*\.c"),
]

TYPEDEF = r"\btypedef\b[^;{]*?\b\w+_t\s*(?:;|\()|\btypedef\b[^;{]*\(\s*\*\s*\w+_t\s*\)|^\}\s*\w+_t\s*;"


def without_comments(text):
    """Comments become blanks; line numbers stay."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0)) if match.group(0).startswith("/") else match.group(0)
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def sources(root, tops):
    for top in tops:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def check_includes(path, text, say):
    layer = "/".join(path.split("/")[:2])
    if layer not in BELOW:
        say(path, 1, f"{layer} is no layer: see BELOW in tests/lint/check_layers.py")
        return
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', text, re.M):
        name = match.group(1)
        line = text.count("\n", 0, match.start()) + 1
        target = "/".join(name.split("/")[:2])
        if layer == "worker/examples":
            if name != "dtworker.h":
                say(path, line, f"an example includes dtworker.h alone, not {name}")
        elif target not in BELOW:
            say(path, line, f'"{name}": includes are written from the root')
        elif target != layer and target not in BELOW[layer]:
            say(path, line, f"{layer} may not include {target}")


def check_places(path, text, say):
    for pattern, place in PLACES:
        if re.fullmatch(place, path):
            continue
        for match in re.finditer(pattern, text):
            say(path, text.count("\n", 0, match.start()) + 1,
                f"{match.group(0)} belongs in {place} alone")


def check_typedefs(path, text, say):
    for match in re.finditer(TYPEDEF, text, re.M):
        say(path, text.count("\n", 0, match.start()) + 1, "no _t typedefs")


def main():
    root = sys.argv[1]
    bad = []

    def say(path, line, what):
        bad.append(f"{path}:{line}: {what}")

    n = 0
    for path in sources(root, ["proto", "psd", "worker"]):
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = without_comments(f.read())
        n += 1
        check_includes(path, text, say)
        check_places(path, text, say)
        check_typedefs(path, text, say)
    if n == 0:
        bad.append("no sources found")
    print("\n".join(bad) if bad else f"{n} files")
    return 1 if bad else 0


sys.exit(main())
