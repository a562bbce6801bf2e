"""Two processes with one rank: the second is refused with host and pid of the first, or takes over when
the first one's lease has ended."""
import signal
import socket

import harness
from harness import expect

TRAIN = ("--steps", 300, "--step-delay", 10)


def test_refused(bench):
    psd = bench.psd(shards=2)
    first = bench.train(psd, 0, 1, *TRAIN)
    harness.wait_until(lambda: any(j["step"] >= 1 for j in psd.status()["jobs"]), "the first one trains")
    second = bench.train(psd, 0, 1, *TRAIN, "--retry-for", "1")
    second.expect_exit(75)
    expect(str(first.pid) in second.err(), f"the refusal names pid {first.pid}: {second.err()[-300:]}")
    expect(socket.gethostname()[:60] in second.err(), "the refusal names the host")
    first.expect_exit(0)
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


harness.main(test_refused, test_takes_over)
