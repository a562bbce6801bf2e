"""Asynchronous training: each algorithm learns, a killed worker leaves the others alone, the first at the
target stops all."""
import signal

import harness
from harness import expect

ALGORITHMS = ("downpour", "downpour-easy", "agn", "sagn")


def test_each_learns(bench):
    """The digits, 3 workers, the algorithm's own rates."""
    for algorithm in ALGORITHMS:
        run = bench.dtworker("run", "--ps-tasks", 1, "--workers", 3, "--algorithm", algorithm, "--model", "softmax", "--data",
                             harness.digits(), "--batch", 10, "--epochs", 10, "--json")
        run.expect_exit(0)
        result = run.json()
        print(f"{algorithm}: test accuracy {result['test_accuracy']:.3f}")
        expect(result["test_accuracy"] >= 0.8, f"{algorithm}: test accuracy {result['test_accuracy']}")
        expect(result["unseen_rows"] == 0, f"{algorithm}: unseen rows {result['unseen_rows']}")


def start(bench, psd, rank, *args):
    return bench.dtworker("train", "--ps", psd.endpoint, "--job", "j", "--rank", rank, "--workers", 3, "--algorithm", "agn",
                          "--model", "softmax", "--data", harness.digits(), "--batch", 10, "--json", *args)


def test_a_killed_one_leaves_the_others_alone(bench):
    psd = bench.psd(shards=2)
    args = ("--steps", 150, "--step-delay", 10, "--lease", "1")
    workers = [start(bench, psd, rank, *args) for rank in range(3)]
    harness.wait_until(lambda: any(j["step"] >= 30 for j in psd.status()["jobs"]), "the job is at step 30")
    workers[1].signal(signal.SIGKILL)
    workers[1].expect_exit(-signal.SIGKILL)
    for w in (workers[0], workers[2]):
        w.expect_exit(0)
        expect(w.json()["steps"] == 150, f"{w.json()}")
    harness.wait_until(lambda: psd.job()["state"] == "complete", "the job is complete without rank 1")
    psd.stop()


def test_the_first_at_the_target_stops_all(bench):
    run = bench.dtworker("run", "--ps-tasks", 1, "--workers", 3, "--algorithm", "agn", "--model", "softmax", "--data",
                         harness.digits(), "--batch", 10, "--epochs", 200, "--target-accuracy", "0.8", "--json")
    run.expect_exit(0)
    expect(run.json()["test_accuracy"] >= 0.7, f"{run.json()}")
    expect(run.json()["samples"] < 200 * 1500, "stopped long before the end")


harness.main(test_each_learns, test_a_killed_one_leaves_the_others_alone,
             test_the_first_at_the_target_stops_all)
