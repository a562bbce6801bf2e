"""scikit-learn's LogisticRegression (C = 1, lbfgs, tol 1e-8) on the digits, reached by SSGD: its objective is the mean
cross entropy + |W|^2 / (2 C n), the bias free, which is weight decay 1 / (C n) of the weights alone."""
import gzip
import os

import numpy

import harness
import peers
import weights
from harness import expect


def read(name):
    with gzip.open(os.path.join(harness.digits(), name)) as f:
        data = f.read()
    dims = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return numpy.frombuffer(data, "u1", offset=4 + 4 * data[3]).reshape(dims)


def loss(x, y, kernel, bias):
    z = x @ kernel + bias
    z -= z.max(1, keepdims=True)
    return float(numpy.mean(numpy.log(numpy.exp(z).sum(1)) - z[numpy.arange(len(y)), y]))


def test_logistic_regression(bench):
    linear = peers.load("sklearn.linear_model", "python3-sklearn")
    y = read("train-labels-idx1-ubyte.gz").astype(int)
    x = read("train-images-idx3-ubyte.gz").reshape(len(y), -1) / 255.0
    n, path = len(y), os.path.join(bench.dir, "w")
    peer = linear.LogisticRegression(C=1, solver="lbfgs", tol=1e-8, max_iter=10000).fit(x, y)
    done = bench.dtworker("run", "--algorithm", "ssgd", "--workers", 2, "--data", harness.digits(), "--batch", n // 2,
                          "--server-optimizer", "momentum", "--lr", "0.5", "--steps", 3000, "--weight-decay", repr(1 / n),
                          "--json", "--save", path)
    done.expect_exit(0)
    w = {name: v.astype("f8") for name, v in weights.load(path).items()}
    ours = loss(x, y, w["dense/kernel"], w["dense/bias"])
    theirs = loss(x, y, peer.coef_.T, peer.intercept_)
    far = numpy.linalg.norm(w["dense/kernel"] - peer.coef_.T) / numpy.linalg.norm(peer.coef_)
    print(f"{n} rows: loss {ours:.6f}, scikit-learn {theirs:.6f}; weights differ by {far:.1e} of their norm")
    expect(abs(ours - done.json()["train_loss"]) < 1e-5, f"dtworker says {done.json()['train_loss']}, NumPy {ours}")
    expect(abs(ours - theirs) <= 1e-3, f"loss {ours}, scikit-learn {theirs}")


harness.main(test_logistic_regression)
