"""--overlap changes when gradients are sent, not the numbers: one worker's weights are the same bit for bit in a
synchronous and in asynchronous rows (with and without a window), two workers' equal by norm."""
import os

import harness
import weights
from harness import expect


def train(bench, name, workers, *options):
    path = os.path.join(bench.dir, f"{name}.safetensors")
    bench.dtworker("run", "--ps-tasks", 2, "--workers", workers, "--model", "mlp:24,16", "--data", harness.digits(),
                   "--batch", 32, "--steps", 60, "--threads", 1, "--save", path, *options).expect_exit(0)
    return weights.load(path)


def test_overlap(bench):
    for algorithm in ("ssgd", "ssgd-diff-lr", "hogwild", "agn", "downpour"):
        plain = train(bench, f"{algorithm}", 1, "--algorithm", algorithm)
        overlapped = train(bench, f"{algorithm}-overlap", 1, "--algorithm", algorithm, "--overlap")
        far = weights.distance(overlapped, plain)
        print(f"{algorithm}: {far:.2e}")
        expect(far == 0, f"{algorithm}: --overlap changes the weights by {far:g}")
    plain = train(bench, "two", 2, "--algorithm", "ssgd")
    far = weights.distance(train(bench, "two-overlap", 2, "--algorithm", "ssgd", "--overlap"), plain)
    print(f"ssgd, two workers: {far:.2e}")
    expect(far <= 1e-5, f"two workers: --overlap changes the weights by {far:g}")
    for wrong in (["--algorithm", "local"], ["--replicas", "2"]):
        bench.dtworker("run", "--model", "softmax", "--data", harness.digits(), "--overlap", *wrong).expect_exit(64)


harness.main(test_overlap)
