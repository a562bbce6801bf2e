"""--aggregate N above M: rank k computes floor(N / M) + (k < N mod M) batches at the same values. N = 5, M = 2 equals one
worker with the joined batch, and five workers with one batch each; a late rank is waited for as all others are."""
import os

import harness
import weights
from harness import expect

N, M, BATCH, STEPS = 5, 2, 22, 60  # 1 500 rows, 110 a step: the last step of an epoch is short
DATA = ("--data", harness.digits(), "--lr", "0.2", "--steps", STEPS, "--threads", 1)


def train_local(bench):
    path = os.path.join(bench.dir, "local")
    bench.dtworker("train", "--algorithm", "local", "--model", "softmax", *DATA, "--batch", N * BATCH, "--save",
                   path).expect_exit(0)
    return weights.load(path)


def train(bench, name, workers, *args):
    psd = bench.psd(shards=2)
    path = os.path.join(bench.dir, name)
    started = [bench.train(psd, rank, workers, *DATA, "--batch", BATCH, "--json", *args,
                           *(["--save", path] if rank == 0 else []), model="softmax") for rank in range(workers)]
    for process in started:
        process.expect_exit(0)
    reports = [process.json() for process in started]
    for r in reports:
        expect(r["steps"] == STEPS and r["unseen_rows"] == 0 and r["stale_dropped"] == 0, f"{r}")
    psd.stop()
    return weights.load(path), [r["samples"] for r in reports]


def close(a, b, what):
    far = weights.distance(a, b)
    print(f"{what}: {far:.2e}")
    expect(far <= 1e-5, f"{what}: ||w - w'|| / ||w'|| is {far:g}")


def test_mean(bench):
    alone = train_local(bench)
    together, samples = train(bench, "mean", M, "--aggregate", N)
    close(together, alone, "N 5, M 2, one worker with batch 5 B")
    expect(1.4 <= samples[0] / samples[1] <= 1.6, f"rank 0 has three batches, rank 1 two: {samples}")
    replicas, _ = train(bench, "replicas", 1, "--aggregate", 2, "--replicas", 2, "--batch", BATCH * 5 // 4)
    other, _ = train(bench, "replicas4", 1, "--replicas", 4, "--batch", BATCH * 5 // 4)
    close(replicas, other, "two batches of two replicas, four replicas")


def test_count(bench):
    """By batches: the divisor of TensorFlow."""
    shared, _ = train(bench, "count", M, "--aggregate", N, "--reduce", "count")
    five, _ = train(bench, "five", N, "--reduce", "count")
    close(shared, five, "count: N 5, M 2, five workers")


def test_run_counts_every_row(bench):
    run = bench.dtworker("run", "--workers", M, "--aggregate", N, "--model", "softmax", "--data", harness.digits(),
                         "--batch", BATCH, "--epochs", 2, "--json")
    run.expect_exit(0)
    expect(run.json()["samples"] == 3000 and run.json()["unseen_rows"] == 0, f"{run.json()}")
    expect(run.json()["steps"] == 2 * 14, f"{run.json()['steps']} steps: 1500 rows, 110 a step")


harness.main(test_mean, test_count, test_run_counts_every_row)
