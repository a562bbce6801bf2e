"""refused.py - what the tests of bad input share: a program is started, ends with the right code, says one line that
names what is wrong and where, and leaves nothing behind."""
import gzip
import os
import shutil
import struct
import subprocess

import harness
from harness import expect


def snapshot(bench):
    """path -> content of every file of the test but the outputs of its programs."""
    found = {}
    for folder, _, names in os.walk(bench.dir):
        for name in names:
            path = os.path.join(folder, name)
            if not name.endswith((".out", ".err")) and os.path.isfile(path):
                with open(path, "rb") as f:
                    found[os.path.relpath(path, bench.dir)] = f.read()
    return found


def refused(bench, code, argv, *words, env=None):
    """Run argv (its first word is a program of ours, or a path): its exit code, and one line on stderr with all words."""
    before = snapshot(bench)
    name = str(argv[0])
    path = name if os.path.isabs(name) else harness.program(name)
    process = bench.start(os.path.basename(name), [path, *map(str, argv[1:])], env)
    process.expect_exit(code)
    expect_one_line(process, *words)
    after = snapshot(bench)
    changed = [n for n in {*before, *after} if before.get(n) != after.get(n)]
    expect(not changed, f"{process.name}: files are as they were: {changed}")
    return process


def expect_one_line(process, *words):
    lines = process.err().splitlines()
    expect(len(lines) == 1, f"{process.name}: one line on stderr: {process.err()}")
    for word in words:
        expect(word in lines[0], f"{process.name}: the line has {word!r}: {lines[0]}")


def write(bench, name, content):
    path = os.path.join(bench.dir, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(content.encode() if isinstance(content, str) else content)
    return path


def idx(dims, data, kind=8):
    return struct.pack(f">BBBB{len(dims)}I", 0, 0, kind, len(dims), *dims) + bytes(data)


def images(n=4):
    return idx((n, 2, 3), range(6 * n))


def labels(n=4):
    return idx((n,), [i % 2 for i in range(n)])


def idx_folder(bench, name, image_bytes, label_bytes, suffix=""):
    write(bench, f"{name}/train-images-idx3-ubyte{suffix}", image_bytes)
    write(bench, f"{name}/train-labels-idx1-ubyte{suffix}", label_bytes)
    return os.path.join(bench.dir, name)


def npy(shape, data, descr="<f4"):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (117 - len(text)) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def safetensors(header, data=b"\0" * 8):
    return struct.pack("<Q", len(header)) + header.encode() + data


def pack(content):
    return gzip.compress(content, mtime=0)


def in_mount_namespace(bench, folder, size):
    """argv in front of a shell script: it runs where a small tmpfs is mounted on `folder`. Else skipped."""
    os.makedirs(folder, exist_ok=True)
    script = f'mount --make-rprivate / && mount -t tmpfs -o size={size} none "{folder}" && exec sh -c "$0"'
    argv = ["unshare", "--mount", "sh", "-c", script]
    if os.geteuid() != 0 or not shutil.which("unshare") or \
            subprocess.run([*argv, "true"], capture_output=True, check=False, timeout=harness.LONG).returncode != 0:
        raise harness.Skipped("no root, or no mount namespace of one's own")
    return argv
