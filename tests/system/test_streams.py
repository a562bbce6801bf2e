"""Standard streams that are closed or full: what a program prints never lands in another file, and output
that could not be written is a failure (74). --save never replaces what is no regular file."""
import os
import stat
import subprocess

import harness
from harness import expect


def run(bench, *argv, closed=(), stdout=subprocess.DEVNULL):
    def close():
        for fd in closed:
            os.close(fd)
    return subprocess.run([harness.program(argv[0]), *argv[1:]], stdin=subprocess.DEVNULL, stdout=stdout,
                          stderr=subprocess.DEVNULL, preexec_fn=close, cwd=bench.dir, env=bench.env,
                          timeout=harness.LONG, check=False).returncode


TRAIN = ("dtworker", "train", "--algorithm", "local", "--model", "toy", "--steps", "3")


def test_closed_streams_stay_apart(bench):
    metrics = os.path.join(bench.dir, "m.jsonl")
    for closed in ((1,), (2,), (1, 2), (0, 1, 2)):
        code = run(bench, *TRAIN, "--metrics", metrics, closed=closed)
        expect(code == (74 if 1 in closed else 0), f"closed {closed}: exit code {code}")
        with open(metrics, encoding="ascii") as f:
            lines = f.read().splitlines()
        expect(lines and all(line.startswith("{") for line in lines), f"closed {closed}: metrics {lines}")


def test_full_output_is_a_failure(bench):
    with open("/dev/full", "wb") as full:
        for argv in (TRAIN, (*TRAIN, "--json"), ("dtworker", "--help"), ("psd", "--dump-config"), ("psctl", "--help")):
            code = run(bench, *argv, stdout=full)
            expect(code == 74, f"{' '.join(argv)}: exit code {code}")


def test_save_replaces_no_device(bench):
    fifo = os.path.join(bench.dir, "fifo")
    os.mkfifo(fifo)
    code = run(bench, *TRAIN, "--save", fifo)
    expect(code == 73, f"exit code {code}")
    expect(stat.S_ISFIFO(os.lstat(fifo).st_mode), "the FIFO is one still")


harness.main(test_closed_streams_stay_apart, test_full_output_is_a_failure, test_save_replaces_no_device)
