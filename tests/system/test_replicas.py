"""--replicas K: M workers with K replicas each are M*K workers; ||w - w'|| <= 1e-5 ||w'|| per variable after 100
steps, which pass several epoch ends with a short last batch."""
import os
import signal

import harness
import weights
from harness import expect

BATCH, STEPS = 22, 100


def run(bench, workers, replicas, *args, model="softmax"):
    path = os.path.join(bench.dir, f"{len(bench.processes)}.safetensors")
    process = bench.dtworker("run", "--workers", workers, "--replicas", replicas, "--model", model, "--data",
                             harness.digits(), "--batch", BATCH, "--threads", 1, "--json", "--save", path, *args)
    process.expect_exit(0)
    return process.json(), weights.load(path)


def expect_equal(a, b, what):
    far = weights.distance(a, b)
    print(f"{what}: {far:.2e}")
    expect(far <= 1e-5, f"{what}: ||w - w'|| / ||w'|| is {far:g}")


def test_two_replicas_are_two_workers(bench):
    args = ("--algorithm", "ssgd", "--lr", "0.2", "--steps", STEPS)
    apart, far = run(bench, 2, 1, *args)
    for workers, replicas in ((1, 2), (2, 2)):
        if workers == 2:
            apart, far = run(bench, 4, 1, *args)
        together, near = run(bench, workers, replicas, *args)
        expect(any(abs(w).max() > 0.01 for w in near.values()), "the weights have moved")
        expect_equal(near, far, f"{workers} workers with {replicas} replicas")
        for key in ("steps", "samples", "unseen_rows"):
            expect(together[key] == apart[key], f"{key}: {together[key]}, {apart[key]}")
        expect(abs(together["train_loss"] - apart["train_loss"]) < 1e-4, f"{together} {apart}")
        expect(together["replicas"] == replicas, f"{together}")


def test_a_rank_rate_counts_once(bench):
    """ssgd-diff-lr: w -= sum of lr_k * g_k; replicas change g_k, a mean, and not lr_k."""
    _, far = run(bench, 2, 2, "--algorithm", "ssgd", "--lr", "0.2", "--steps", 20)
    _, near = run(bench, 2, 2, "--algorithm", "ssgd-diff-lr", "--lr-per-rank", "0.1,0.1", "--steps", 20)
    expect_equal(near, far, "ssgd-diff-lr, 0.1 and 0.1, and ssgd at 0.2")


def test_a_network(bench):
    args = ("--algorithm", "ssgd", "--lr", "0.05", "--steps", 40)
    _, far = run(bench, 3, 1, *args, model="mlp:16")
    _, near = run(bench, 1, 3, *args, model="mlp:16")
    expect_equal(near, far, "mlp:16")


def test_local(bench):
    """Three replicas of a batch are one of three times the size; the steps are the same ones."""
    path = os.path.join(bench.dir, "one.safetensors")
    one = bench.dtworker("train", "--algorithm", "local", "--data", harness.digits(), "--batch", 3 * BATCH, "--lr", "0.2",
                         "--steps", STEPS, "--threads", 1, "--json", "--save", path)
    one.expect_exit(0)
    result, near = run(bench, 1, 3, "--algorithm", "local", "--lr", "0.2", "--steps", STEPS)
    expect(result["steps"] == STEPS and result["samples"] == one.json()["samples"], f"{result}")
    expect_equal(near, weights.load(path), "local")


def test_windows(bench):
    """Local steps by the mean over the replicas; asynchronous, one worker, one ps task: nothing is left to chance."""
    for algorithm in ("sagn", "agn", "downpour", "downpour-easy"):
        first, near = run(bench, 1, 3, "--algorithm", algorithm, "--epochs", 4)
        _, again = run(bench, 1, 3, "--algorithm", algorithm, "--epochs", 4)
        expect(all((near[name] == again[name]).all() for name in near), f"{algorithm}: the same bits again")
        expect(first["samples"] == 4 * 1500 and first["unseen_rows"] == 0, f"{algorithm}: {first}")
        expect(first["test_accuracy"] > 0.7, f"{algorithm}: {first}")


def test_ends_with_its_threads(bench):
    worker = bench.dtworker("train", "--algorithm", "local", "--data", harness.digits(), "--steps", 1000000, "--replicas", 4,
                            "--step-delay", 5)
    harness.wait_until(lambda: "steps" in worker.out(), "the training starts")
    harness.wait_until(lambda: len(os.listdir(f"/proc/{worker.pid}/task")) >= 4, "its threads run")
    n = len(os.listdir(f"/proc/{worker.pid}/task"))
    worker.signal(signal.SIGTERM)
    worker.expect_exit(-signal.SIGTERM)
    expect(n < 12, f"not a thread a step: {n}")


def test_usage(bench):
    for wrong in (0, 65, "two"):
        bench.dtworker("train", "--algorithm", "local", "--data", harness.digits(), "--replicas", wrong).expect_exit(64)


harness.main(test_two_replicas_are_two_workers, test_a_network, test_local, test_windows, test_ends_with_its_threads,
             test_usage)
