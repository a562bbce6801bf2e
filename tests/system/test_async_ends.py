"""Regular ends of an asynchronous job: early finishers, unequal parts, more workers than rows, TERM,
and the first at the target accuracy stops all."""
import os
import signal

import harness
from asynchronous import expect_done, start, step_of, wait_for_step
from harness import expect


def test_early_finishers_hold_nobody(bench):
    """--steps is each worker's own; when one leaves the others go on, and the last one completes the job."""
    psd = bench.psd(shards=2)
    workers = [start(bench, psd, rank, 3, "--steps", steps, "--step-delay", 10) for rank, steps in enumerate((9, 60, 150))]
    for w, steps in zip(workers, (9, 60, 150)):
        expect_done(w, steps)
    expect(workers[0].json()["seconds"] < workers[1].json()["seconds"] < workers[2].json()["seconds"], "each at its own end")
    job = psd.job()
    expect(job["state"] == "complete" and job["step"] == 9 + 60 + 150, f"{job['state']} at {job['step']}")
    expect(job["counters"]["left"] == 3 and job["counters"]["lost"] == 0, f"{job['counters']}")
    psd.stop()


def test_unequal_parts(bench):
    """1500 rows in global batches of 8 x 50: the last one of an epoch holds 300, parts of 38 and of 37."""
    psd = bench.psd(shards=2)
    workers = [start(bench, psd, rank, 8, "--epochs", 3, batch=50) for rank in range(8)]
    for w in workers:
        expect_done(w, 3 * 4)
        expect(w.json()["unseen_rows"] == 0, f"{w.json()}")
    samples = [w.json()["samples"] for w in workers]
    expect(samples == [3 * (150 + 38)] * 4 + [3 * (150 + 37)] * 4, f"every row once an epoch: {samples}")
    expect(psd.job()["state"] == "complete", f"{psd.job()}")
    psd.stop()


def test_more_workers_than_rows(bench):
    """Three rows for four workers: the fourth has nothing to compute, abstains, and ends with 0."""
    data = os.path.join(bench.dir, "three.csv")
    with open(data, "w") as f:
        f.write("a,b,label\n1,0,0\n0,1,1\n0.5,0.5,1\n")
    psd = bench.psd(shards=2)
    workers = [start(bench, psd, rank, 4, "--epochs", 30, batch=1, data=data) for rank in range(4)]
    for w in workers:
        expect_done(w, 30)
    samples = [w.json()["samples"] for w in workers]
    expect(samples == [30, 30, 30, 0], f"{samples}")
    job = psd.job()
    expect(job["state"] == "complete" and job["step"] == 3 * 30, f"the step counts batches: {job['state']} at {job['step']}")
    psd.stop()


def test_term_of_one(bench):
    """LEAVE, then the signal; the others finish."""
    psd = bench.psd(shards=2)
    workers = [start(bench, psd, rank, 3, "--steps", 300, "--step-delay", 10) for rank in range(3)]
    wait_for_step(psd, 60)
    workers[1].signal(signal.SIGTERM)
    workers[1].expect_exit(-signal.SIGTERM)
    expect(workers[1].json()["interrupted"] is True, f"{workers[1].json()}")
    for w in (workers[0], workers[2]):
        expect_done(w, 300)
    counters = psd.job()["counters"]
    expect(psd.job()["state"] == "complete", "without waiting for a lease")
    expect(counters["left"] == 3 and counters["lost"] == 0, f"{counters}")
    psd.stop()


def test_the_first_at_the_target_stops_all(bench):
    """The global step at which one of them was there becomes the stop step; rank 2 has no target of its own."""
    psd = bench.psd(shards=2)
    end = 100000
    target = ("--target-accuracy", "0.75")
    workers = [start(bench, psd, rank, 3, "--steps", end, "--step-delay", 4, *(target if rank < 2 else ())) for rank in range(3)]
    for w in workers:
        w.expect_exit(0)
    steps = [w.json()["steps"] for w in workers]
    expect(max(steps) < end // 10, f"long before the end: {steps}")
    accuracy = [w.json()["test_accuracy"] for w in workers]
    expect(max(accuracy) >= 0.7, f"it was reached: {accuracy}")
    job = psd.job()
    expect(job["state"] == "complete" and job["counters"]["left"] == 3, f"{job}")
    expect(step_of(psd) == sum(steps), f"{step_of(psd)} and {steps}")
    psd.stop()


harness.main(test_early_finishers_hold_nobody, test_unequal_parts, test_more_workers_than_rows, test_term_of_one,
             test_the_first_at_the_target_stops_all)
