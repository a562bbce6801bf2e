"""An expected worker that never comes: after --start-timeout the job shrinks, or fails with the rank."""
import harness
from harness import expect


def test_shrink(bench):
    psd = bench.psd()
    worker = bench.train(psd, 0, 2, "--steps", 50, "--start-timeout", "1", "--json")
    worker.expect_exit(0)
    expect(worker.json()["steps"] == 50, "all steps alone")
    job = psd.job()
    expect(job["state"] == "complete" and job["counters"]["lost"] == 1, f"{job['state']}, {job['counters']}")
    psd.stop()


def test_fail(bench):
    psd = bench.psd()
    worker = bench.train(psd, 0, 2, "--steps", 50, "--start-timeout", "1", "--on-loss", "fail")
    worker.expect_exit(75)
    expect("rank 1" in worker.err(), f"the reason names rank 1: {worker.err()[-300:]}")
    expect(psd.job()["state"] == "failed", "the job has failed")
    psd.stop()


def test_comes_after_that(bench):
    """One that missed its start joins late."""
    psd = bench.psd()
    first = bench.train(psd, 0, 2, "--steps", 400, "--step-delay", 10, "--start-timeout", "1", "--json")
    harness.wait_until(lambda: any(j["step"] >= 3 for j in psd.status()["jobs"]), "the first one trains alone")
    second = bench.train(psd, 1, 2, "--steps", 400, "--step-delay", 10, "--start-timeout", "1", "--json")
    first.expect_exit(0)
    second.expect_exit(0)
    job = psd.job()
    expect(job["step"] == 400 and job["state"] == "complete", f"{job['state']} at {job['step']}")
    expect(job["counters"]["joined"] == 1, f"counters {job['counters']}")
    psd.stop()


harness.main(test_shrink, test_fail, test_comes_after_that)
