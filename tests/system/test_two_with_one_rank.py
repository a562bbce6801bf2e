"""Two processes with one rank: the second is refused with host and pid of the first, or takes over when
the first one's lease has ended."""
import signal
import socket

import harness
from harness import expect

TRAIN = ("--steps", 300, "--step-delay", 10)
ENDLESS = ("--steps", 1000000, "--step-delay", 10)


def test_refused(bench):
    psd = bench.psd(shards=2)
    first = bench.train(psd, 0, 1, *ENDLESS)
    harness.wait_until(lambda: any(j["step"] >= 1 for j in psd.status()["jobs"]), "the first one trains")
    second = bench.train(psd, 0, 1, *ENDLESS, "--retry-for", "1")
    second.expect_exit(75)
    expect(str(first.pid) in second.err(), f"the refusal names pid {first.pid}: {second.err()[-300:]}")
    expect(socket.gethostname()[:60] in second.err(), "the refusal names the host")
    last = second.err().splitlines()[-1]
    expect("rank 0 of job j is taken" in last and "give each worker a --rank of its own" in last and "--workers M" in last,
           f"one line names the cause and the remedy: {last}")
    first.signal(signal.SIGTERM)
    first.expect_exit(-signal.SIGTERM)
    psd.stop()


def test_both_without_a_rank(bench):
    """Started by hand, twice the same command: --rank is 0 and --workers is 1."""
    psd = bench.psd(shards=2)
    same = ("train", "--ps", psd.endpoint, "--job", "j", "--model", "toy", *ENDLESS)
    first = bench.dtworker(*same)
    harness.wait_until(lambda: any(j["step"] >= 1 for j in psd.status()["jobs"]), "the first one trains")
    second = bench.dtworker(*same)
    harness.wait_until(lambda: "--rank" in second.err(), "while it waits for the rank it says why, and what to do")
    line = second.err().splitlines()[-1]
    expect(f"taken by pid {first.pid}" in line and "give each worker a --rank of its own" in line, line)
    first.signal(signal.SIGTERM)
    first.expect_exit(-signal.SIGTERM)
    second.signal(signal.SIGTERM)
    second.wait()
    psd.stop()


def test_takes_over(bench):
    psd = bench.psd(shards=2)
    first = bench.train(psd, 0, 1, *TRAIN, "--lease", "2")
    harness.wait_until(lambda: any(j["step"] >= 1 for j in psd.status()["jobs"]), "the first one trains")
    second = bench.train(psd, 0, 1, *TRAIN, "--lease", "2")
    first.signal(signal.SIGKILL)
    second.expect_exit(0)
    first.wait()
    job = psd.job()
    expect(job["step"] == 300 and job["state"] == "complete", f"{job['state']} at {job['step']}")
    psd.stop()


harness.main(test_refused, test_both_without_a_rank, test_takes_over)
