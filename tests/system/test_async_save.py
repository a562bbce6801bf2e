"""--save in an asynchronous job writes the job's final values, whoever ends first: workers that save wait for the
others and pull once more. A signal ends the wait."""
import os
import signal

import harness
import weights
from asynchronous import expect_done, start
from harness import expect


def saved(bench, name):
    return os.path.join(bench.dir, f"{name}.safetensors")


def waiting(psd):
    """The waits for the end, by rank."""
    return {w["rank"]: w["step"] for job in psd.status()["jobs"] for w in job["waiting"] if w["reason"] == "global_step"}


def test_all_save_the_same(bench):
    psd = bench.psd(shards=2)
    workers = [start(bench, psd, rank, 3, "--steps", steps, "--step-delay", 5, *save)
               for rank, steps, save in ((0, 30, ["--save", saved(bench, "early")]), (1, 400, []),
                                         (2, 350, ["--save", saved(bench, "later")]))]
    harness.wait_until(lambda: waiting(psd).get(0, 0) is None, "the early one waits, for no step")
    for worker, steps in zip(workers, (30, 400, 350)):
        expect_done(worker, steps)
    early, later = weights.load(saved(bench, "early")), weights.load(saved(bench, "later"))
    expect(weights.distance(early, later) == 0, "both saved the final values")
    expect(psd.job()["state"] == "complete", f"{psd.job()}")
    psd.stop()


def test_a_signal_ends_the_wait(bench):
    psd = bench.psd(shards=2)
    early = start(bench, psd, 0, 2, "--steps", 30, "--save", saved(bench, "stopped"))
    other = start(bench, psd, 1, 2, "--steps", 100000, "--step-delay", 5)
    harness.wait_until(lambda: 0 in waiting(psd), "the early one waits")
    early.signal(signal.SIGTERM)
    early.expect_exit(0)
    expect(os.path.exists(saved(bench, "stopped")), "it was done: it saves and ends well")
    other.signal(signal.SIGTERM)
    other.expect_exit(-signal.SIGTERM)
    psd.stop()


def test_run_saves_the_final_values(bench):
    path = saved(bench, "run")
    run = bench.dtworker("run", "--workers", 3, "--algorithm", "agn", "--model", "softmax", "--data", harness.digits(),
                         "--batch", 10, "--steps", 90, "--step-delay", "0,10,10", "--save", path, "--json")
    run.expect_exit(0)
    score = bench.dtworker("eval", "--model-file", path, "--data", harness.digits(), "--json")
    score.expect_exit(0)
    expect(abs(run.json()["test_accuracy"] - score.json()["test_accuracy"]) < 1e-9,
           f"the report is about the saved values: {run.json()['test_accuracy']}, {score.json()}")


harness.main(test_all_save_the_same, test_a_signal_ends_the_wait, test_run_saves_the_final_values)
