"""Schedules, clipping and weight decay of dtworker: ssgd with one worker equals local by norm; what they do is seen in
the weights against NumPy; what cannot be is refused before the start, with the reason."""
import os

import numpy

import harness
import weights
from harness import expect

EXTRAS = {
    "exponential": ["--lr-schedule", "exponential:rate=.5,steps=20,staircase", "--warmup", 5],
    "cosine": ["--lr-schedule", "cosine:steps=50,alpha=0.1", "--weight-decay", "0.01"],
    "polynomial": ["--lr-schedule", "polynomial:steps=40,end=0.01,power=2", "--clip-value", "0.02"],
    "piecewise": ["--lr-schedule", "piecewise:10=0.3,30=0.05", "--clip-norm", "0.1"],
    "inverse": ["--lr-schedule", "inverse-time:rate=1,steps=30", "--clip-norm", "0.2", "--clip-value", "0.01",
                "--weight-decay", "0.001", "--warmup", 10],
}


def trained(bench, name, algorithm, *args):
    path = os.path.join(bench.dir, name)
    bench.dtworker("run", "--algorithm", algorithm, "--workers", 1, "--data", harness.digits(), "--batch", 50, "--lr", "0.5",
                   "--steps", 60, "--threads", 1, "--save", path, *args).expect_exit(0)
    return weights.load(path)


def test_one_worker_equals_local(bench):
    plain = trained(bench, "plain", "local")
    for name, args in EXTRAS.items():
        rule = "momentum" if name == "cosine" else "sgd"
        alone = trained(bench, f"local-{name}", "local", "--local-optimizer", rule, *args)
        served = trained(bench, f"ssgd-{name}", "ssgd", "--server-optimizer", rule, *args)
        far, moved = weights.distance(served, alone), weights.distance(plain, alone)
        print(f"{name}: {far:.2e}, from training without: {moved:.2e}")
        expect(far <= 1e-5, f"{name}: ||w - w'|| / ||w'|| is {far:g}")
        expect(moved > 0.01, f"{name} changes the training")


def test_toy_by_numpy(bench):
    """a + b against 100: the gradient of every element is c - 100; sgd in psd with everything."""
    path = os.path.join(bench.dir, "toy")
    bench.dtworker("run", "--algorithm", "ssgd", "--workers", 2, "--model", "toy", "--lr", "0.1", "--steps", 12,
                   "--warmup", 4, "--lr-schedule", "piecewise:5=0.2,8=0.05", "--clip-norm", "30", "--clip-value", "12",
                   "--weight-decay", "0.5", "--save", path).expect_exit(0)
    a = 0.0
    for t in range(12):
        rate = (0.1 if t <= 5 else 0.2 if t <= 8 else 0.05) * min(1, (t + 1) / 4)
        g = 2 * a - 100
        g *= 30 / max(numpy.sqrt(4 * g * g), 30)
        a -= rate * (numpy.clip(g, -12, 12) + 0.5 * a)
    for name, w in weights.load(path).items():
        expect(numpy.allclose(w, a, rtol=1e-5), f"{name} is {w}, not {a}")


def test_biases_have_no_decay(bench):
    with_decay = trained(bench, "decay", "ssgd", "--weight-decay", "2", "--steps", 1)
    without = trained(bench, "none", "ssgd", "--steps", 1)
    expect((with_decay["dense/kernel"] == without["dense/kernel"]).all(), "the first step is from zeros")
    pinned = trained(bench, "many", "ssgd", "--weight-decay", "1.9")
    free = trained(bench, "free", "ssgd")
    ratio = numpy.linalg.norm(pinned["dense/kernel"]) / numpy.linalg.norm(free["dense/kernel"])
    expect(ratio < 0.2, f"weights decay: {ratio}")
    expect(numpy.linalg.norm(pinned["dense/bias"]) > 0, "biases are there")


def test_windows_follow(bench):
    """Rows with a local rule beside the server's, racy ones, and replicas take the options too."""
    for algorithm in ("sagn", "downpour", "agn", "hogwild"):
        bench.dtworker("run", "--algorithm", algorithm, "--workers", 2, "--data", harness.digits(), "--batch", 50, "--steps",
                       30, "--lr-schedule", "cosine:steps=100", "--warmup", 3, "--clip-value", "0.5", "--clip-norm", "5",
                       "--weight-decay", "0.001", "--replicas", 2).expect_exit(0)


def refused(bench, word, *args):
    p = bench.dtworker("run", "--data", harness.digits(), "--steps", 5, *args)
    p.expect_exit(64)
    expect(word in p.err(), f"{args}: '{p.err()}' does not say {word}")


def test_refusals(bench):
    refused(bench, "use constant, exponential", "--lr-schedule", "linear:steps=5")
    refused(bench, "exponential has no 'step'", "--lr-schedule", "exponential:rate=.5,step=5")
    refused(bench, "exponential.steps is missing", "--lr-schedule", "exponential:rate=.5")
    refused(bench, "takes a value", "--lr-schedule", "exponential:rate,steps=5")
    refused(bench, "takes no value", "--lr-schedule", "exponential:rate=.5,steps=5,staircase=1")
    refused(bench, "is no number", "--lr-schedule", "exponential:rate=half,steps=5")
    refused(bench, "given twice", "--lr-schedule", "cosine:steps=5,steps=6")
    refused(bench, "must be a whole number", "--lr-schedule", "cosine:steps=5.5")
    refused(bench, "at2 is 5, must be above at1, 10", "--lr-schedule", "piecewise:10=.1,5=.2")
    refused(bench, "as in piecewise:1000=0.01", "--lr-schedule", "piecewise:10")
    refused(bench, "has no numbers", "--lr-schedule", "cosine")
    refused(bench, "comes to 0", "--server-optimizer", "ftrl", "--lr", "0.1", "--lr-schedule", "cosine:steps=5")
    refused(bench, "clip-value", "--clip-value", "-1")
    refused(bench, "before its norm is known", "--overlap", "--clip-norm", "1")
    refused(bench, "which is no gradient", "--algorithm", "ssgd-diff-lr", "--weight-decay", "0.1")
    refused(bench, "has its own", "--algorithm", "ssgd-diff-lr", "--lr-schedule", "piecewise:10=.1")
    refused(bench, "--clip-norm 1e-60", "--clip-norm", "1e-60")


harness.main(test_one_worker_equals_local, test_toy_by_numpy, test_biases_have_no_decay, test_windows_follow,
             test_refusals)
