"""50 private clusters one after the other, 4 workers each: all end well and soon. And unequal data: 1 001
rows over 2 workers in batches of 10, 3 epochs, every row seen once an epoch."""
import gzip
import os
import struct
import time

import harness
from harness import expect


def test_fifty(bench):
    for i in range(50):
        begin = time.monotonic()
        run = bench.dtworker("run", "--ps-tasks", 1, "--workers", 4, "--algorithm", "ssgd", "--model", "toy", "--steps", 20,
                             "--json")
        run.expect_exit(0)
        total = time.monotonic() - begin
        after = total - run.json()["seconds"]
        expect(after < 10 * 5, f"run {i}: {after:.1f} s besides its steps")


def cut_digits(bench, rows):
    """The first rows of the training digits as plain IDX files."""
    folder = os.path.join(bench.dir, "data")
    os.makedirs(folder)
    for name in sorted(os.listdir(harness.digits())):
        if not name.endswith(".gz"):
            continue
        with gzip.open(os.path.join(harness.digits(), name)) as f:
            data = f.read()
        if name.startswith("train"):
            dims = data[3]
            each = 1
            for d in range(1, dims):
                each *= struct.unpack(">I", data[4 + 4 * d:8 + 4 * d])[0]
            start = 4 + 4 * dims
            data = data[:4] + struct.pack(">I", rows) + data[8:start] + data[start:start + rows * each]
        with open(os.path.join(folder, name[:-3]), "wb") as f:
            f.write(data)
    return folder


def test_unequal_data(bench):
    folder = cut_digits(bench, 1001)
    run = bench.dtworker("run", "--ps-tasks", 1, "--workers", 2, "--algorithm", "ssgd", "--model", "softmax", "--data", folder,
                         "--batch", 10, "--epochs", 3, "--lr", "0.1", "--json")
    run.expect_exit(0)
    result = run.json()
    expect(result["samples"] == 3 * 1001, f"samples {result['samples']}")
    expect(result["unseen_rows"] == 0, f"unseen rows {result['unseen_rows']}")
    expect(result["steps"] == 3 * 51, f"steps {result['steps']}")


harness.main(test_unequal_data, test_fifty)
