"""SIGHUP: log level and limits change in the running psd; what needs a restart is named; a bad file changes nothing."""
import os
import signal
import time

import harness
from harness import expect

JOB = ("--steps", 5)


def write(bench, *lines):
    path = os.path.join(bench.dir, "psd.conf")
    with open(path, "w", encoding="ascii") as f:
        f.write("[psd]\n" + "".join(f"{line}\n" for line in lines))
    return path


def reload(psd):
    """SIGHUP, and wait until it has been obeyed; the lines that it brought."""
    before = len(psd.err().splitlines())
    marks = psd.err().count("read again")
    psd.signal(signal.SIGHUP)
    harness.wait_until(lambda: psd.err().count("read again") > marks, "psd says that it has read its file")
    return "\n".join(psd.err().splitlines()[before:])


def start(bench, *lines):
    return bench.psd(shards=2, flags=("--file", write(bench, *lines)))


def test_limits(bench):
    psd = start(bench, "memory_quota = 1GiB")
    bench.train(psd, 0, 1, *JOB, job="before").expect_exit(0)
    write(bench, "memory_quota = 1KiB", "max_session_bytes = 2MiB", "window = 8", "window_bytes = 2MiB")
    lines = reload(psd)
    for text in ("memory_quota = 1KiB (it was: memory_quota = 1GiB)", "window = 8 (it was: window = 32)",
                 "max_session_bytes = 2MiB", "window_bytes = 2MiB", "changed 4, to be changed by a restart 0"):
        expect(text in lines, f"psd says {text!r}: {lines}")
    refused = bench.train(psd, 0, 1, *JOB, job="refused")
    expect(refused.wait() != 0 and "memory_quota allows a job 1024" in refused.err(), f"refused: {refused.err()}")
    write(bench, "memory_quota = 1GiB")
    reload(psd)
    bench.train(psd, 0, 1, *JOB, job="after").expect_exit(0)
    psd.stop()


def test_while_training(bench):
    """A worker that is there goes on with its window; one that comes has the new one."""
    psd = start(bench, "window = 32")
    first = bench.train(psd, 0, 2, "--steps", 200, "--step-delay", 5)
    second = bench.train(psd, 1, 2, "--steps", 200, "--step-delay", 5)
    harness.wait_until(lambda: any(j["step"] > 3 for j in psd.status()["jobs"]), "it trains")
    write(bench, "window = 1", "window_bytes = 1MiB")
    reload(psd)
    third = bench.train(psd, 0, 1, *JOB, job="other")
    for worker in (first, second, third):
        worker.expect_exit(0)
    counters = psd.job()["counters"]
    expect(counters["lost"] == 0 and counters["left"] == 2, f"nobody was disturbed: {counters}")
    psd.stop()


def test_log_level(bench):
    psd = start(bench, "log_level = err")
    expect("listens on" not in psd.err(), "it is quiet")
    write(bench, "log_level = info")
    expect("log_level = info (it was: log_level = err)" in reload(psd), "the change is told")
    bench.train(psd, 0, 1, *JOB).expect_exit(0)
    expect("job j is complete" in psd.err(), "it says more")
    write(bench, "log_level = err")
    reload(psd)
    n = len(psd.err())
    bench.train(psd, 0, 1, *JOB, job="quiet").expect_exit(0)
    psd.stop()
    expect("quiet" not in psd.err()[n:], "it is quiet again")


def test_restart_needed(bench):
    psd = start(bench, "window = 16")
    write(bench, "shard_ports = consecutive", "window = 64", "listen = tcp://127.0.0.1:1")
    lines = reload(psd)
    for text in ("shard_ports = consecutive needs a restart", "window = 64 needs a restart, the sockets were made for 16",
                 "changed 0, to be changed by a restart 2"):
        expect(text in lines, f"psd says {text!r}: {lines}")
    psd.stop()


def test_bad_file(bench):
    psd = start(bench, "memory_quota = 1GiB")
    for line, why in (("nonsense = 1", "nonsense"), ("window = many", "must be a whole number"), ("[other]", "section")):
        write(bench, line)
        expect(why in (lines := reload(psd)) and "not read again, the old one stays" in lines, f"{line}: {lines}")
    os.unlink(os.path.join(bench.dir, "psd.conf"))
    expect("not read again" in reload(psd), "a file that is gone")
    bench.train(psd, 0, 1, *JOB).expect_exit(0)
    psd.stop()


def test_stop_timeout(bench):
    """A stop that waits for a worker which stands: as long as the new value says, not the old one."""
    psd = start(bench, "stop_timeout = 2s")
    worker = bench.train(psd, 0, 1, "--steps", 100000, "--step-delay", 10)
    harness.wait_until(lambda: any(j["step"] > 3 for j in psd.status()["jobs"]), "it trains")
    write(bench, "stop_timeout = 60s")
    reload(psd)
    worker.signal(signal.SIGSTOP)
    begin = time.monotonic()
    psd.signal(signal.SIGTERM)
    psd.expect_exit(0)
    took = time.monotonic() - begin
    expect(took > 1.9, f"it gave up after {took:.1f} s")  # half of the timeout, at most 2 s: 1 s with the old value
    worker.signal(signal.SIGCONT)
    harness.wait_until(lambda: "is shutting down" in worker.err(), "the worker finds what psd has said")
    time.sleep(0.5)
    expect(worker.err().count("is shutting down") == 1, f"ten times, and it tells it once: {worker.err()}")
    worker.kill()


harness.main(test_limits, test_while_training, test_log_level, test_restart_needed, test_bad_file, test_stop_timeout)
