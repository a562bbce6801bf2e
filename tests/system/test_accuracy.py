"""The main job: softmax regression on Fashion-MNIST by SSGD, 2 workers, 5 epochs: test accuracy >= 0.82."""
import os

import harness
from harness import expect


def test_fashion(bench):
    if not os.path.isdir(harness.FASHION):
        raise harness.Skipped("dataset-fashion-mnist is not installed")
    run = bench.dtworker("run", "--ps-tasks", 1, "--workers", 2, "--algorithm", "ssgd", "--model", "softmax", "--data",
                         harness.FASHION, "--epochs", 5, "--batch", 100, "--lr", "0.1", "--json")
    run.expect_exit(0, 800)
    result = run.json()
    print(f"test accuracy {result['test_accuracy']:.4f}, {result['samples_per_second']:.0f} samples/s")
    expect(result["test_accuracy"] >= 0.82, f"test accuracy {result['test_accuracy']}")
    expect(result["samples"] == 300000 and result["unseen_rows"] == 0, f"{result}")


harness.main(test_fashion)
