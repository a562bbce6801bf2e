"""dtworker train --algorithm local, eval and check on the digits; and that synchronous workers equal it:
M workers with batch B are one local worker with batch M*B, whatever the number of shards."""
import json
import os
import signal
import struct

import numpy

import harness
from harness import expect

STEPS = 100  # over three epoch ends whose last batch is short (1500 rows, 44 a step)


def tensors(path):
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(n))
        data = f.read()
    meta = header.pop("__metadata__")
    values = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        values[name] = numpy.frombuffer(data[begin:end], "<f4").reshape(t["shape"])
    return meta, values


def local(bench, name, *args):
    path = os.path.join(bench.dir, name)
    worker = bench.dtworker("train", "--algorithm", "local", "--data", harness.digits(), "--save", path, "--json", *args)
    worker.expect_exit(0)
    return worker.json(), path


def test_trains_saves_and_evaluates(bench):
    metrics = os.path.join(bench.dir, "metrics.jsonl")
    result, path = local(bench, "w", "--epochs", 5, "--batch", 50, "--lr", "0.5", "--metrics", metrics)
    expect(result["steps"] == 150 and result["samples"] == 7500 and result["unseen_rows"] == 0, f"result {result}")
    expect(result["test_accuracy"] > 0.85, f"test accuracy {result['test_accuracy']}")
    with open(metrics, encoding="ascii") as f:
        lines = [json.loads(line) for line in f]
    ends = [line for line in lines if line["accuracy"] is not None]
    expect([line["step"] for line in ends] == [30, 60, 90, 120, 150], f"accuracy at each epoch end: {lines}")
    expect(abs(ends[-1]["accuracy"] - result["test_accuracy"]) < 1e-9, "the last epoch end is the end")
    meta, values = tensors(path)
    expect(meta["model"] == "softmax" and meta["step"] == "150", f"metadata {meta}")
    expect({name: v.shape for name, v in values.items()} == {"dense/kernel": (64, 10), "dense/bias": (10,)},
           f"tensors {values.keys()}")
    evaluated = bench.dtworker("eval", "--model-file", path, "--data", harness.digits(), "--json")
    evaluated.expect_exit(0)
    for key in ("train_loss", "test_accuracy"):
        expect(abs(evaluated.json()[key] - result[key]) < 1e-6, f"eval and train agree on {key}")


def test_is_reproducible(bench):
    args = ("--epochs", 2, "--batch", 32, "--lr", "0.2", "--seed", 9, "--threads", 1)
    _, first = local(bench, "a", *args)
    _, second = local(bench, "b", *args)
    with open(first, "rb") as a, open(second, "rb") as b:
        expect(a.read() == b.read(), "the same seed gives the same file")


def test_target_accuracy(bench):
    result, _ = local(bench, "w", "--epochs", 100, "--batch", 50, "--lr", "0.5", "--target-accuracy", "0.8")
    expect(result["steps"] < 3000 and result["steps"] % 30 == 0, f"stopped at an epoch end: {result['steps']}")
    expect(result["test_accuracy"] >= 0.8, f"test accuracy {result['test_accuracy']}")


def test_check(bench):
    check = bench.dtworker("check", harness.digits())
    check.expect_exit(0)
    expect(len(check.out().splitlines()) == 4 and "1500" in check.out(), f"four files: {check.out()}")
    empty = os.path.join(bench.dir, "empty")
    os.mkdir(empty)
    bench.dtworker("check", empty).expect_exit(66)
    broken = os.path.join(bench.dir, "broken")
    os.mkdir(broken)
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                 "t10k-labels-idx1-ubyte"):
        with open(os.path.join(broken, name), "wb") as f:
            f.write(b"\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
    bad = bench.dtworker("check", broken)
    bad.expect_exit(65)
    expect(len(bad.err().splitlines()) == 1 and broken in bad.err(), f"one line that names the file: {bad.err()}")


def test_stopped_by_a_signal(bench):
    for number in (signal.SIGINT, signal.SIGTERM):
        path = os.path.join(bench.dir, f"w{number}")
        worker = bench.dtworker("train", "--algorithm", "local", "--data", harness.digits(), "--steps", 1000000,
                                "--step-delay", 5, "--save", path, "--metrics", f"{path}.jsonl")
        harness.wait_until(lambda: harness.has_content(f"{path}.jsonl"), "it trains")
        worker.signal(number)
        worker.expect_exit(-number)
        meta, _ = tensors(path)
        expect(0 < int(meta["step"]) < 1000000, f"the values of the step it had: {meta}")


def test_not_finite(bench):
    worker = bench.dtworker("train", "--algorithm", "local", "--model", "toy", "--lr", "1e8", "--steps", 100)
    worker.expect_exit(65)
    expect("--lr" in worker.err() and "step" in worker.err(), f"names the step and what to do: {worker.err()}")


def equal_to_local(bench, workers, shards):
    batch = 44 // workers
    args = ("--steps", STEPS, "--lr", "0.3", "--seed", 3, "--data", harness.digits())
    _, path = local(bench, f"local{workers}-{shards}", "--steps", STEPS, "--lr", "0.3", "--seed", 3, "--batch",
                    batch * workers)
    psd = bench.psd(shards=shards)
    saved = os.path.join(bench.dir, f"w{workers}-{shards}")
    ranks = [bench.train(psd, rank, workers, "--batch", batch, *args, *(("--save", saved) if rank == 0 else ()),
                         model="softmax") for rank in range(workers)]
    for r in ranks:
        r.expect_exit(0)
    psd.stop()
    _, want = tensors(path)
    _, got = tensors(saved)
    for name, w in want.items():
        distance = numpy.linalg.norm(got[name] - w) / numpy.linalg.norm(w)
        expect(distance <= 1e-5, f"{workers} workers, {shards} shards: {name} differs by {distance:.2e}")


def test_synchronous_workers_equal_it(bench):
    for workers in (1, 2, 4):
        for shards in (1, 3):
            equal_to_local(bench, workers, shards)


harness.main(test_trains_saves_and_evaluates, test_is_reproducible, test_target_accuracy, test_check,
             test_stopped_by_a_signal, test_not_finite, test_synchronous_workers_equal_it)
