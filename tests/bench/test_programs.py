"""The benchmarks' options, and what they leave when they are interrupted or fail.

test_programs.py BIN: the folder of the programs that are there (bench_train only with dtworker)."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BIN = sys.argv[1]
MINE = {  # beside --json
    "bench_hot": {"--seconds"},
    "bench_kernels": {"--seconds", "--max-mib"},
    "bench_many": {"--seconds", "--workers", "--active"},
    "bench_memory": {"--max-mib"},
    "bench_train": {"--seconds", "--max-mib", "--only"},
    "bench_transport": {"--seconds", "--max-mib", "--bytes", "--transport", "--only"},
}
VALUES = {"--seconds": "1", "--max-mib": "4", "--bytes": "64", "--transport": "ipc", "--only": "push", "--workers": "10",
          "--active": "5"}
WRONG = {  # (program, arguments): a word of the line
    ("bench_hot", "--seconds"): "seconds",
    ("bench_hot", "--seconds 0"): "seconds",
    ("bench_hot", "--seconds inf"): "seconds",
    ("bench_hot", "more"): "more",
    ("bench_kernels", "--max-mib 0"): "max-mib",
    ("bench_many", "--workers 10 --active 3"): "multiple",
    ("bench_train", "--only sgd --max-mib 1"): "options",
    ("bench_transport", "--only push-pull"): "options",
    ("bench_transport", "--bytes 65"): "options",
    ("bench_transport", "--bytes 0"): "bytes",
    ("bench_transport", "--transport udp"): "transport",
}
INTERRUPTED = {  # arguments, and what there must be before it is interrupted
    "bench_hot": ("--seconds 60", "a directory"),  # of the bare echo
    "bench_kernels": ("--seconds 60", "nothing"),
    "bench_many": ("--seconds 60 --workers 4 --active 2", "a child"),
    "bench_train": ("--seconds 1 --max-mib 4", "a child"),
    "bench_transport": ("--seconds 1 --bytes 64 --transport ipc", "a child"),
}


def expect(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def program(name):
    return os.path.join(BIN, name)


def here():
    return [name for name in MINE if os.path.exists(program(name))]


def refused(name, *argv):
    """Its one line."""
    done = subprocess.run([program(name), *argv], capture_output=True, text=True, timeout=60, check=False)
    what = f"{name} {' '.join(argv)}"
    expect(done.returncode == 64, f"{what} ended with {done.returncode}: {done.stderr}")
    expect(re.fullmatch(rf"{name}: .+\n", done.stderr), f"{what}: one line that names the program, not {done.stderr!r}")
    expect(not done.stdout, f"{what}: nothing on stdout, not {done.stdout!r}")
    return done.stderr


def test_options():
    for name in here():
        for option, value in VALUES.items():
            if option not in MINE[name]:
                line = refused(name, option, value)
                told = set(re.findall(r"\[(--[a-z-]+)", line))
                expect(told == MINE[name] | {"--json"}, f"{name} has {sorted(MINE[name])}: {line}")
    for (name, argv), word in WRONG.items():
        if name in here():
            line = refused(name, *argv.split())
            expect(word in line, f"{name} {argv}: the line names {word}: {line}")


def children(pid):
    """None of one that has just ended."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(n) for n in f.read().split()]
    except OSError:
        return []


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return None


def descendants(pid):
    """Pids with their names: those that come later may have the same numbers."""
    found = []
    for child in children(pid):
        found.append((child, name_of(child)))
        found += descendants(child)
    return found


def alive(pid, name):
    return name is not None and name_of(pid) == name


def wait_until(condition, what):
    end = time.monotonic() + 60
    while not condition():
        expect(time.monotonic() < end, what)
        time.sleep(0.02)


def begun(p, folder, what):
    if what == "a directory":
        return os.listdir(folder)
    return what == "nothing" or any(name in ("psd", "dtworker") for _, name in descendants(p.pid))


def end(name, argv, what, hit, code):
    """Started with these arguments and begun, it ends with that code once `hit` has been called with it."""
    folder = tempfile.mkdtemp(prefix="psd-")
    p = subprocess.Popen([program(name), *argv.split()], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": folder})
    try:
        wait_until(lambda: begun(p, folder, what), f"{name} begins")
        family = descendants(p.pid)
        hit(p)
        expect(p.wait(60) == code, f"{name} ended with {p.returncode}, not {code}")
        wait_until(lambda: not any(alive(*one) for one in family), f"{name}: none of {family} is left")
        expect(not os.listdir(folder), f"{name}: {os.listdir(folder)} is left")
    finally:
        p.kill()
        p.wait()
        shutil.rmtree(folder)


def test_interrupted():
    for name in INTERRUPTED:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
            if name in here():
                end(name, *INTERRUPTED[name], lambda p, number=number: p.send_signal(number), -number)


def kill_dtworkers(p):
    """One may have ended by itself, and another begun. What else is a child (the sanitizer's) is not ours."""
    while p.poll() is None:
        try:
            for pid in children(p.pid):
                if alive(pid, "dtworker"):
                    os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
        time.sleep(0.02)


def test_failed():
    """bench_train, when a dtworker is killed."""
    if "bench_train" in here():
        end("bench_train", *INTERRUPTED["bench_train"], kill_dtworkers, 1)


signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job has it ignored, and so would the programs
test_options()
test_interrupted()
test_failed()
