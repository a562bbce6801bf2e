"""--deterministic: the same bits in every run, whatever the shards, ps tasks and order of arrival, and those of one
process that sums the gradients in rank order (replicas of one local process do); what does not go with it is refused."""
import os

import harness
import weights
from harness import expect

M, STEPS, BATCH = 3, 14, 21  # 1 500 rows: the 24th global batch is short; mlp:520,520 has a variable of two slices
MODEL = ("--model", "mlp:520,520", "--batch", BATCH, "--lr", "0.2", "--steps", STEPS)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def train(bench, name, shards, ps_tasks, delays=(0, 0, 0), *args):
    psds = [bench.psd(shards=shards) for _ in range(ps_tasks)]
    ps = ",".join(p.endpoint for p in psds)
    path = os.path.join(bench.dir, name)
    started = [bench.dtworker("train", "--ps", ps, "--job", "j", "--rank", rank, "--workers", M, "--algorithm", "ssgd",
                              "--data", harness.digits(), *MODEL, "--deterministic", "--step-delay", delays[rank], *args,
                              *(["--save", path] if rank == 0 else [])) for rank in range(M)]
    for process in started:
        process.expect_exit(0)
    for psd in psds:
        psd.stop()
    return path


def same_values(a, b):
    a, b = weights.load(a), weights.load(b)
    return a.keys() == b.keys() and all((a[k].view("u4") == b[k].view("u4")).all() for k in a)


def test_the_same_bits(bench):
    first = train(bench, "first", 1, 1)
    for name, shards, ps_tasks, delays, args in (("again", 1, 1, (0, 0, 0), ()), ("late first", 3, 1, (30, 0, 0), ()),
                                                 ("late second, overlap", 3, 2, (0, 30, 0), ("--overlap",))):
        other = train(bench, name, shards, ps_tasks, delays, *args)
        expect(read(other) == read(first), f"{name}: another file")
    alone = os.path.join(bench.dir, "alone")
    bench.dtworker("train", "--algorithm", "local", "--replicas", M, "--threads", 1, "--data", harness.digits(), *MODEL,
                   "--save", alone).expect_exit(0)
    expect(same_values(first, alone), "one process that sums in rank order has the same bits")
    expect(abs(weights.load(first)["dense1/kernel"]).max() > 0.01, "the weights are not nothing")


def test_short_batches_and_run(bench):
    """20 rows a step of 3 workers, the last batch of an epoch is short: 1 500 = 71 x 21 + 9."""
    saved = []
    for ps_tasks in (1, 2):
        saved.append(os.path.join(bench.dir, f"run{ps_tasks}"))
        bench.dtworker("run", "--ps-tasks", ps_tasks, "--workers", M, "--algorithm", "sagn", "--model", "softmax", "--data",
                       harness.digits(), "--batch", 7, "--epochs", 2, "--deterministic", "--step-delay",
                       "0,2,0" if ps_tasks == 2 else "2,0,0", "--save", saved[-1]).expect_exit(0)
    expect(read(saved[0]) == read(saved[1]), "two runs of sagn")


def test_refusals(bench):
    def refused(*args):
        p = bench.dtworker("run", "--workers", M, "--model", "softmax", "--data", harness.digits(), "--deterministic", *args)
        p.expect_exit(64)
        expect("--deterministic" in p.err(), p.err())
    for args in (("--algorithm", "agn"), ("--algorithm", "local", "--workers", 1), ("--aggregate", 2),
                 ("--on-loss", "shrink"), ("--threads", 2)):
        refused(*args)
    psd = bench.psd()
    raw = bench.raw(psd)
    for wrong in ({"consistency": "async"}, {"on_loss": "shrink"}, {"kernel": ""}, {"aggregate": 1}):
        reply = raw.hello(**{"workers": 2, "deterministic": "yes", "on_loss": "fail", "kernel": "K", **wrong})
        expect(reply.status == 34 and "deterministic" in reply.text, f"{wrong}: {reply}")
    reply = raw.hello(workers=2, deterministic="yes", on_loss="fail", kernel="NoSuchCpu")
    expect(reply.status == 0, f"{reply}")
    worker = bench.train(psd, 1, 2, "--deterministic")
    worker.expect_exit(78)
    expect("kernel" in worker.err() and "NoSuchCpu" in worker.err(), worker.err())
    psd.stop()


harness.main(test_the_same_bits, test_short_batches_and_run, test_refusals)
