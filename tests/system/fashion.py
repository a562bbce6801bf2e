"""fashion.py - every algorithm with its own default rates on Fashion-MNIST, three workers, 5 epochs; and mlp:128 by
SSGD, two workers, 10 epochs. For the tests of one ps task and of several."""
import os
import re
import subprocess

import harness
from harness import expect

ALGORITHMS = {"ssgd", "ssgd-diff-lr", "sagn", "hogwild", "downpour", "downpour-easy", "agn", "dynsgd", "easgd",
              "aeasgd", "eamsgd", "ssp"}


def algorithms():
    """Those of --help that need psd: at least the twelve."""
    text = subprocess.run([harness.program("dtworker"), "train", "--help"], capture_output=True, text=True,
                          timeout=harness.LONG, check=True).stdout
    found = re.search(r"--algorithm NAME\s+(.*?)\(default", text, re.S)
    expect(found, "--help lists the algorithms")
    names = re.split(r",\s*|\s+or\s+", " ".join(found.group(1).split()))
    expect(ALGORITHMS | {"local"} <= set(names), f"{names} lack {ALGORITHMS - set(names)}")
    return [name for name in names if name != "local"]


def train(bench, psds, job, workers, *options):
    """The reports of all workers."""
    ps = ",".join(p.endpoint for p in psds)
    started = [bench.dtworker("train", "--ps", ps, "--job", job, "--rank", rank, "--workers", workers, "--data",
                              harness.FASHION, "--threads", 1, "--json", *options)
               for rank in range(workers)]
    for worker in started:
        worker.expect_exit(0, 800)
    return [worker.json() for worker in started]


def check(reports, name, bound):
    """The last to finish has seen all updates."""
    last = max(reports, key=lambda r: r["seconds"])
    samples = sum(r["samples"] for r in reports)
    print(f"{name}: test accuracy {last['test_accuracy']:.4f}, {last['seconds']:.1f} s, "
          f"{samples / last['seconds']:.0f} samples/s")
    expect(last["test_accuracy"] >= bound, f"{name}: test accuracy {last['test_accuracy']}, at least {bound} is due")
    return samples


def train_all(bench, n_ps, **psd_options):
    if not os.path.isdir(harness.FASHION):
        raise harness.Skipped("dataset-fashion-mnist is not installed")
    psds = [bench.psd(**psd_options) for _ in range(n_ps)]
    for name in algorithms():
        reports = train(bench, psds, name, 3, "--algorithm", name, "--model", "softmax", "--epochs", 5)
        expect(check(reports, name, 0.80) == 300000, f"{name}: every row once an epoch")
    reports = train(bench, psds, "mlp", 2, "--algorithm", "ssgd", "--model", "mlp:128", "--epochs", 10)
    expect(check(reports, "mlp:128", 0.85) == 600000, "mlp:128: every row once an epoch")
    for psd in psds:
        psd.stop()
