"""Elastic averaging: what is saved and tested is the centre, the same for all; a worker that is killed, stopped for longer
than its lease, or joins late, holds nobody up; every row is counted."""
import json
import os
import signal

import harness
import weights
from asynchronous import expect_done, kill, start, wait_for_step
from harness import expect


def test_what_is_saved_is_the_centre(bench):
    for algorithm in ("easgd", "aeasgd", "eamsgd"):
        psd = bench.psd(shards=2)
        paths = [os.path.join(bench.dir, f"{algorithm}{rank}") for rank in range(3)]
        workers = [start(bench, psd, rank, 3, "--epochs", 10, "--save", paths[rank], algorithm=algorithm)
                   for rank in range(3)]
        for w in workers:
            w.expect_exit(0)
        expect(sum(w.json()["samples"] for w in workers) == 15000, "every row once an epoch")
        first = weights.load(paths[0])
        for path in paths[1:]:
            expect(all((first[k] == w).all() for k, w in weights.load(path).items()), f"{algorithm}: {path} differs")
        checked = bench.dtworker("eval", "--model-file", paths[0], "--data", harness.digits(), "--json")
        checked.expect_exit(0)
        accuracy = checked.json()["test_accuracy"]
        print(f"{algorithm}: {accuracy:.3f}")
        expect(accuracy >= 0.8, f"{algorithm}: {accuracy}")
        expect(psd.job()["state"] == "complete", f"{psd.job()}")
        psd.stop()


def test_a_killed_worker(bench):
    for algorithm in ("easgd", "aeasgd"):
        psd = bench.psd(shards=2)
        workers = [start(bench, psd, rank, 3, "--steps", 150, "--step-delay", 10, "--lease", "1", algorithm=algorithm)
                   for rank in range(3)]
        wait_for_step(psd, 30)
        kill(workers[1])
        for w in (workers[0], workers[2]):
            expect_done(w, 150)
        psd.stop()


def test_a_worker_whose_lease_ended_goes_on_from_the_centre(bench):
    for algorithm in ("easgd", "aeasgd"):
        psd = bench.psd(shards=2)
        workers = [start(bench, psd, rank, 2, "--steps", 400, "--step-delay", 10, "--lease", "1", algorithm=algorithm)
                   for rank in range(2)]
        wait_for_step(psd, 30)
        workers[1].signal(signal.SIGSTOP)
        harness.wait_until(lambda: psd.job()["counters"]["lost"] == 1, "rank 1 is lost")
        workers[1].signal(signal.SIGCONT)
        for w in workers:
            expect_done(w, 400)
        expect(workers[1].json()["lives_lost"] == 1, json.dumps(workers[1].json()))
        expect(workers[1].json()["test_accuracy"] >= 0.8, json.dumps(workers[1].json()))
        psd.stop()


def test_a_late_worker(bench):
    for algorithm in ("easgd", "aeasgd"):
        psd = bench.psd(shards=2)
        alpha = ("--alpha", "0.4")
        first = start(bench, psd, 0, 1, "--steps", 300, "--step-delay", 10, *alpha, algorithm=algorithm)
        wait_for_step(psd, 30)
        if algorithm == "easgd":  # the alpha of one worker would be too much for two
            refused = start(bench, psd, 1, 1, "--steps", 300, algorithm=algorithm)
            refused.expect_exit(64)
            expect("--alpha 0.9 of 2 workers" in refused.err(), refused.err())
        late = start(bench, psd, 1, 1, "--steps", 300, *alpha, algorithm=algorithm)
        for w in (first, late):
            expect_done(w, 300)
        psd.stop()


harness.main(test_what_is_saved_is_the_centre, test_a_killed_worker,
             test_a_worker_whose_lease_ended_goes_on_from_the_centre, test_a_late_worker)
