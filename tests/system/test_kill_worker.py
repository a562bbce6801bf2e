"""kill -9 of a worker inside a round: after its lease it is struck, and the others finish; or the job
fails with its name."""
import signal

import harness
from harness import expect

TRAIN = ("--steps", 300, "--step-delay", 10, "--lease", "1", "--json")


def start(bench, *extra):
    psd = bench.psd(shards=2)
    workers = [bench.train(psd, rank, 3, *TRAIN, *extra) for rank in range(3)]
    harness.wait_until(lambda: any(j["step"] >= 5 for j in psd.status()["jobs"]), "the job is at step 5")
    workers[2].signal(signal.SIGKILL)
    workers[2].expect_exit(-signal.SIGKILL)
    return psd, workers


def test_shrink(bench):
    psd, workers = start(bench)
    for w in workers[:2]:
        w.expect_exit(0)
        expect(w.json()["steps"] == 300, f"steps {w.json()['steps']}")
    job = psd.job()
    expect(job["state"] == "complete" and job["step"] == 300, f"{job['state']} at {job['step']}")
    expect(job["counters"]["lost"] == 1, f"counters {job['counters']}")
    lost = [m for m in job["members"] if m["rank"] == 2][0]
    expect(lost["state"] == "lost", f"rank 2 is {lost['state']}")
    psd.stop()


def test_fail(bench):
    psd, workers = start(bench, "--on-loss", "fail")
    for w in workers[:2]:
        w.expect_exit(75)
        expect("rank 2" in w.err(), f"the reason names rank 2: {w.err()[-300:]}")
    expect(psd.job()["state"] == "failed", "the job has failed")
    psd.stop()


harness.main(test_shrink, test_fail)
