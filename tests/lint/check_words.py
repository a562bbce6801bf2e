"""Words that no file may hold: open ends, and absolute paths that exist on one machine only."""
import os
import re
import sys

# Where an absolute path may point.
ROOTS = "bin boot dev etc lib lib64 opt proc run sbin sys tmp usr var nonexistent".split()
SKIP = {".git", "build", "data", "corpus", "__pycache__", "lint"}
TEXT = (".c", ".h", ".py", ".sh", ".md", ".txt", ".json", ".cmake", ".conf", ".in", ".service")
MAN = re.compile(r".*\.[1-8]$")
OPEN_ENDS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
PATH = re.compile(r"(?:(?<=[\s\"'`(=,])|^)/([a-z][a-z0-9_-]*)/[A-Za-z0-9]")
LOCAL = re.compile(r"\b(?:localhost|127\.\d+\.\d+\.\d+)/(?:index|simple|registry)\b")


def files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIP and not f.startswith("build-")]
        for name in sorted(names):
            if name.endswith(TEXT) or MAN.match(name) or name in ("run", ".clang-tidy", ".clang-format"):
                yield os.path.join(folder, name)


def check_line(line):
    match = OPEN_ENDS.search(line)
    if match:
        return f"{match.group(1)}: finish it, or file it"
    for match in PATH.finditer(line):
        if match.group(1) not in ROOTS:
            return f"/{match.group(1)}/... is a path of one machine"
    if LOCAL.search(line):
        return "an address of one machine"
    return None


def main():
    root = sys.argv[1]
    bad, n = [], 0
    for path in files(root):
        n += 1
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                what = check_line(line)
                if what:
                    bad.append(f"{os.path.relpath(path, root)}:{number}: {what}")
    print("\n".join(bad) if bad else f"{n} files")
    return 1 if bad or n == 0 else 0


sys.exit(main())
