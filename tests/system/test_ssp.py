"""ssp: with bound s nobody is more than s steps ahead, seen in the staleness of every push (an update between a pull and
its push is of a worker at most 2s + 1 steps further); a killed worker and one that ends early let the others go;
--save gets the final values; it trains as well as the other algorithms."""
import signal
import time

import asynchronous
import harness
from harness import expect


def start(bench, ps, rank, workers, bound, *args):
    return asynchronous.start(bench, ps, rank, workers, "--staleness-bound", bound, *args, algorithm="ssp")


def test_the_bound(bench):
    for bound in (0, 2):
        for ps_tasks in (1, 2):
            psds = [bench.psd(shards=2) for _ in range(ps_tasks)]
            workers = [start(bench, psds, rank, 2, bound, "--steps", 60, *(["--step-delay", 20] if rank else []),
                             *(["--save", f"{bench.dir}/final"] if rank == 0 else [])) for rank in range(2)]
            for w in workers:
                asynchronous.expect_done(w, 60)
                most = w.json()["staleness"]["max"]
                expect(most <= 2 * bound + 1, f"s = {bound}: a push was {most} updates old")
            for psd in psds:
                psd.stop()


def test_a_killed_worker(bench):
    psd = bench.psd(shards=2)
    workers = [start(bench, psd, rank, 3, 1, "--steps", 80, "--lease", "5s", "--step-delay", 10) for rank in range(3)]
    asynchronous.wait_for_step(psd, 30)
    workers[2].signal(signal.SIGSTOP)  # until its lease ends
    harness.wait_until(lambda: psd.job()["waiting"], "the others wait")
    waiting = [w for w in psd.job()["waiting"] if w["reason"] == "clock"]
    expect(not waiting or waiting[0]["ranks"] == [2], f"for rank 2: {waiting}")
    workers[2].signal(signal.SIGCONT)
    workers[2].signal(signal.SIGKILL)
    workers[2].expect_exit(-signal.SIGKILL)
    for w in workers[:2]:
        asynchronous.expect_done(w, 80)
    expect(psd.job()["counters"]["lost"] == 1, f"{psd.job()}")
    psd.stop()


def test_who_ends_early_and_who_comes_late(bench):
    psd = bench.psd(shards=2)
    early = start(bench, psd, 0, 2, 0, "--steps", 10)
    late = start(bench, psd, 1, 2, 0, "--steps", 200, "--step-delay", 10)
    asynchronous.expect_done(early, 10)
    asynchronous.wait_for_step(psd, 40)
    joiner = start(bench, psd, 5, 2, 0, "--steps", 200)
    asynchronous.expect_done(late, 200)
    joiner.expect_exit(0)
    expect(0 < joiner.json()["samples"] < 200 * 10, f"it began where the other was: {joiner.json()['samples']} rows")
    psd.stop()


def test_stopped_and_continued(bench):
    """A worker whose lease ended joins again at the least clock and goes on."""
    psd = bench.psd(shards=2)
    workers = [start(bench, psd, rank, 2, 2, "--steps", 300, "--lease", "1s", "--step-delay", 10) for rank in range(2)]
    asynchronous.wait_for_step(psd, 40)
    workers[1].signal(signal.SIGSTOP)
    harness.wait_until(lambda: psd.job()["counters"]["lost"] == 1, "its lease ends")
    time.sleep(0.3)
    workers[1].signal(signal.SIGCONT)
    for w in workers:
        asynchronous.expect_done(w, 300)
    psd.stop()


def test_target_and_accuracy(bench):
    """Whoever reaches the target stops all, also those that wait for its clock."""
    run = bench.dtworker("run", "--ps-tasks", 2, "--workers", 3, "--algorithm", "ssp", "--staleness-bound", 1, "--model",
                         "softmax", "--data", harness.digits(), "--batch", 10, "--epochs", 20, "--target-accuracy", 0.8,
                         "--save", f"{bench.dir}/final", "--step-delay", "0,3,0", "--json")
    run.expect_exit(0)
    result = run.json()
    expect(result["steps"] < 1000 and result["test_accuracy"] >= 0.75, f"others went on for a step or two: {result}")
    run = bench.dtworker("run", "--workers", 3, "--algorithm", "ssp", "--model", "softmax", "--data", harness.digits(),
                         "--batch", 10, "--epochs", 6, "--step-delay", "0,0,3", "--json")
    run.expect_exit(0)
    expect(run.json()["test_accuracy"] >= 0.8, f"{run.json()}")


def test_refusals(bench):
    for args in (("ssgd", "--staleness-bound", 1), ("agn", "--staleness-bound", 1), ("ssp", "--wait-for-step", 5),
                 ("ssp", "--aggregate", 1), ("ssp", "--deterministic")):
        bench.dtworker("run", "--algorithm", args[0], "--model", "toy", *args[1:]).expect_exit(64)


harness.main(test_the_bound, test_a_killed_worker, test_who_ends_early_and_who_comes_late, test_stopped_and_continued,
             test_target_and_accuracy, test_refusals)
