"""--partition: variables cut into parts over two ps tasks are trained as whole ones, bit for bit where the order of a
sum cannot differ; the bytes are balanced; saved files hold whole variables; workers must cut alike; psd names the parts."""
import json
import os

import harness
import weights
from harness import expect

TRAINING = ("--algorithm", "ssgd", "--model", "mlp:32", "--batch", 25, "--steps", 40, "--seed", 5)


def run(bench, name, *args, workers=1):
    path = os.path.join(bench.dir, name)
    bench.dtworker("run", "--workers", workers, *TRAINING, "--data", harness.digits(), "--threads", 1, "--save", path,
                   *args).expect_exit(0)
    return weights.load(path)


def test_parts_are_trained_as_whole_variables(bench):
    """One worker: no sum depends on the order of arrival, so all bits are equal, slots of momentum included."""
    momentum = ("--server-optimizer", "momentum", "--lr", "0.05")
    plain = run(bench, "plain", *momentum)
    expect(all(abs(w).max() > 0.001 for w in plain.values()), "the weights have moved")
    for i, how in enumerate(("fixed:3", "axis-size:1KiB", "min-max:5:512", "axis-size:1:7", "none")):
        for more in ((), ("--placement", "round-robin"), ("--overlap",)):
            cut = run(bench, f"cut{i}", *momentum, "--ps-tasks", 2, "--partition", how, *more)
            expect(cut.keys() == plain.keys(), f"{how}: {sorted(cut)}")
            for name, w in plain.items():
                expect(w.shape == cut[name].shape and w.tobytes() == cut[name].tobytes(), f"{how} {more}: {name} differs")


def test_two_workers_and_a_window(bench):
    sagn = ("--algorithm", "sagn", "--window", 3)
    far = weights.distance(run(bench, "cut", *sagn, "--ps-tasks", 2, "--partition", "fixed:4", workers=2),
                           run(bench, "plain", *sagn, workers=2))
    expect(far <= 1e-5, f"||w - w'|| / ||w'|| is {far:g}")


def held(psd):
    done = psd.psctl("placement", "--json")
    expect(done.returncode == 0, done.stderr)
    job, = json.loads(done.stdout)["jobs"]
    return job["variables"]


def train(bench, psds, rank, workers, *args):
    return bench.dtworker("train", "--ps", ",".join(p.endpoint for p in psds), "--job", "j", "--rank", rank, "--workers",
                          workers, *TRAINING, "--data", harness.digits(), *args)


def test_bytes_are_balanced_and_parts_are_named(bench):
    psds = [bench.psd(), bench.psd()]
    train(bench, psds, 0, 1, "--partition", "fixed:4").expect_exit(0)
    parts = held(psds[0])
    names = [v["name"] for v in parts]
    expect(names[:5] == [f"dense1/kernel/part_{k}" for k in range(4)] + ["dense1/bias/part_0"], f"{names}")
    expect([v["shape"] for v in parts[:4]] == [[16, 32]] * 4, f"{parts[:4]}")
    expect([v["shape"] for v in parts[12:16]] == [[3], [3], [2], [2]], f"the first parts have a row more: {parts[12:]}")
    load = [sum(v["bytes"] for v in parts if v["ps_task"] == t) for t in (0, 1)]
    whole = 4 * (64 * 32 + 32 + 32 * 10 + 10)
    expect(sum(load) == whole and max(load) <= 0.52 * whole, f"bytes of the ps tasks: {load}")
    for psd in psds:
        psd.stop()


def test_a_pin_holds_for_all_parts(bench):
    psds = [bench.psd(), bench.psd()]
    train(bench, psds, 0, 1, "--partition", "fixed:3", "--place", "dense1/kernel=1,dense2/bias=0").expect_exit(0)
    tasks = {v["name"]: v["ps_task"] for v in held(psds[0])}
    expect([tasks[f"dense1/kernel/part_{k}"] for k in range(3)] == [1, 1, 1], f"{tasks}")
    expect([tasks[f"dense2/bias/part_{k}"] for k in range(3)] == [0, 0, 0], f"{tasks}")
    for psd in psds:
        psd.stop()


def test_all_workers_cut_alike(bench):
    for i, (mine, other, words) in enumerate(((("fixed:2", "fixed:4", ("[32, 32]", "[16, 32]"))),
                                              ((None, "fixed:2", ("dense1/kernel", "dense1/kernel/part_0"))))):
        psds = [bench.psd(), bench.psd()]
        given = ("--partition", mine) if mine else ()
        first = train(bench, psds, 0, 2, *given, "--start-timeout", "12s")
        harness.wait_until(lambda: psds[0].status()["jobs"] and held(psds[0]), "the first has declared")
        second = train(bench, psds, 1, 2, "--partition", other, "--start-timeout", "12s")
        second.expect_exit(78)
        for word in words:
            expect(word in second.err(), f"{i}: both are named (one has more parts): {second.err()}")
        first.expect_exit(0)
        for psd in psds:
            psd.stop()


def test_wrong_ways(bench):
    for args, word in ((("--partition", "fixed:0"), "fixed:N"), (("--partition", "halves"), "min-max"),
                       (("--partition", "axis-size:1:2:3"), "axis-size"),
                       (("--algorithm", "local", "--workers", 1, "--partition", "fixed:2"), "--partition")):
        worker = bench.dtworker("run", "--model", "toy", "--workers", 2, *args)
        worker.expect_exit(64)
        lines = worker.err().splitlines()
        expect(len(lines) == 1 and word in lines[0], f"{args}: one line with '{word}': {lines}")


harness.main(test_parts_are_trained_as_whole_variables, test_two_workers_and_a_window,
             test_bytes_are_balanced_and_parts_are_named, test_a_pin_holds_for_all_parts, test_all_workers_cut_alike,
             test_wrong_ways)
