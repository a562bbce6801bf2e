"""psctl set on a live job: the learning rate changes exactly at the named step on all shards, it is logged and shown;
the bound on staleness of an asynchronous job; what psd and psctl refuse."""
import json
import os
import subprocess

import numpy

import harness
import protocol
import weights
from harness import expect

STEPS = 150


def psctl(psd, *args, code=0):
    argv = [harness.program("psctl"), "--admin", psd.admin, *map(str, args)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=harness.LONG, check=False)
    expect(done.returncode == code, f"{argv} ended with {done.returncode}, not {code}: {done.stdout}{done.stderr}")
    return done.stdout if code == 0 else done.stderr


def running(psd, steps):
    harness.wait_until(lambda: psd.status()["jobs"] and psd.job()["step"] >= steps, f"step {steps} has come")


def test_rate_at_a_step(bench):
    """The toy: dL/da = dL/db = a + b - 100; a and b are on different shards."""
    psd = bench.psd(shards=2)
    path = os.path.join(bench.dir, "w")
    workers = [bench.train(psd, rank, 2, "--lr", "0.01", "--steps", STEPS, "--step-delay", 60,
                           *(["--save", path] if rank == 0 else [])) for rank in range(2)]
    running(psd, 2)
    said = psctl(psd, "--at-step", 120, "set", "lr=0.02")
    expect(said == "lr of job j is 0.02 from step 120 on\n", said)
    near = json.loads(psctl(psd, "--json", "--variable", "b", "set", "lr=0.005"))
    expect(near["ok"] and near["step"] >= 4 and near["variable"] == "b", f"{near}")
    job = psd.job()
    expect(job["sets"] == [{"key": "lr", "value": 0.02, "variable": "", "step": 120},
                           {"key": "lr", "value": 0.005, "variable": "b", "step": near["step"]}], f"{job['sets']}")
    text = psctl(psd, "status")
    expect("  set lr=0.02 from step 120 on\n" in text, text)
    expect(f"  set lr=0.005 of b from step {near['step']} on\n" in text, text)
    late = psctl(psd, "--at-step", 1, "set", "lr=1", code=64)
    expect("step 1 has passed" in late, late)
    for worker in workers:
        worker.expect_exit(0)
    a = b = 0.0
    for t in range(STEPS):
        g = a + b - 100
        a -= (0.02 if t >= 120 else 0.01) * g
        b -= (0.02 if t >= 120 else 0.005 if t >= near["step"] else 0.01) * g
    got = weights.load(path)
    expect(near["step"] < 120, "the machine is too slow for this test")
    expect(numpy.allclose(got["a"], a, rtol=1e-5) and numpy.allclose(got["b"], b, rtol=1e-5),
           f"a = {got['a']}, not {a}; b = {got['b']}, not {b}")
    expect("the operator sets lr to 0.02 from step 120 on" in psd.err(), "it is logged")
    psd.stop()


def test_staleness(bench):
    psd = bench.psd()
    workers = [bench.train(psd, rank, 2, "--algorithm", "hogwild", "--steps", 100, "--step-delay", 20) for rank in range(2)]
    running(psd, 2)
    said = psctl(psd, "--job", "j", "set", "max-staleness=0")
    expect(said.startswith("max_staleness of job j is 0 from step "), said)
    psctl(psd, "--at-step", 10**6, "set", "lr=0.001")
    harness.wait_until(lambda: psd.job()["counters"]["stale"] > 0, "a push is refused as too old", 60)
    for worker in workers:
        worker.kill()
    psd.stop()


def test_bound_of_ssp(bench):
    """Rank 0 waits for a slow one in each step, until the bound is larger than what is left."""
    psd = bench.psd(shards=2)
    fast, slow = (bench.train(psd, rank, 2, "--algorithm", "ssp", "--staleness-bound", 0, "--steps", 40,
                              *(["--step-delay", 1000] if rank else [])) for rank in range(2))
    running(psd, 1)
    expect(fast.is_alive(), "it waits")
    psctl(psd, "set", "staleness-bound=1000")
    fast.expect_exit(0)
    expect(slow.is_alive(), "and then no more")
    slow.kill()
    psd.stop()


def test_refusals(bench):
    psd = bench.psd()
    expect("psd has no job" in psctl(psd, "set", "lr=1", code=64), "no job")
    worker = bench.train(psd, 0, 1, "--steps", 10000, "--step-delay", 50, "--lr-schedule", "piecewise:5=0.1")
    running(psd, 1)
    for args, word in ((["set"], "KEY=VALUE"), (["set", "lr"], "use lr=RATE,"), (["set", "momentum=1"], "use lr=RATE,"),
                       (["set", "lr=fast"], "is no number"), (["set", "lr=-1"], "names its rates itself"),
                       (["set", "max-staleness=1"], "is not asynchronous"), (["--at-step", "x", "set", "lr=1"], "at-step"),
                       (["--variable", "c", "set", "lr=1"], "no variable c"),
                       (["--job", "other", "set", "lr=1"], "there is no job other")):
        said = psctl(psd, *args, code=64)
        expect(word in said, f"{args}: {said}")
    worker.kill()
    psd.stop()


def test_many_changes_to_come(bench):
    """psd keeps 64 of a variable: the one that counts does not give way to those that are to come."""
    psd = bench.psd()
    worker = bench.train(psd, 0, 1, "--steps", 100000, "--step-delay", 20)
    running(psd, 1)
    psctl(psd, "set", "lr=0.01")
    admin = bench.raw(psd, psd.admin)
    said = [admin.call(36, ["j", "lr", 0.02, "", 10**6 + i]) for i in range(64)]
    expect([reply.status for reply in said] == [0] * 63 + [protocol.BAD_VALUE], f"{said}")
    expect("63 changes of lr of job j are to come" in said[-1].text, said[-1].text)
    worker.kill()
    psd.stop()


def test_parts_on_two_psds(bench):
    """A variable that is cut: each psd changes the parts that it holds, by the variable's name; a part has one home."""
    psds = [bench.psd() for _ in range(2)]
    worker = bench.train(",".join(psd.endpoint for psd in psds), 0, 1, "--data", harness.digits(), "--partition", "fixed:2",
                         "--steps", 100000, "--step-delay", 20, model="mlp:16")
    running(psds[0], 1)
    for psd in psds:
        said = psctl(psd, "--at-step", 10**6, "--variable", "dense1/kernel", "set", "lr=0.01")
        expect(said == "lr of job j, dense1/kernel is 0.01 from step 1000000 on\n", said)
    codes = [psd.psctl("--variable", "dense1/kernel/part_0", "set", "lr=0.1").returncode for psd in psds]
    expect(sorted(codes) == [0, 64], f"{codes}")
    worker.kill()
    for psd in psds:
        psd.stop()


harness.main(test_rate_at_a_step, test_staleness, test_bound_of_ssp, test_refusals, test_many_changes_to_come,
             test_parts_on_two_psds)
