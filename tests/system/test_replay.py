"""--record and dtworker replay: an asynchronous run of three workers, one of them slow, is repeated bit for bit in one
process; what is missing, cut, damaged or changed is named in one line; what cannot be recorded is refused."""
import json
import os
import shutil
import signal

import harness
from harness import expect

DATA = ("--data", harness.digits())
SLOW = ("--workers", 3, "--step-delay", "1,0,4")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def record(bench, name, *args):
    """The directory of a record, and the file that the run has saved."""
    saved, where = os.path.join(bench.dir, f"{name}.safetensors"), os.path.join(bench.dir, name)
    bench.dtworker("run", "--record", where, "--save", saved, *args).expect_exit(0)
    return where, saved


def replay(bench, where, *args):
    worker = bench.dtworker("replay", where, *args)
    worker.expect_exit(0)
    return worker


def check(bench, name, *args):
    where, saved = record(bench, name, *args)
    again = os.path.join(bench.dir, f"{name}-again.safetensors")
    told = json.loads(replay(bench, where, "--json", "--save", again).out())
    expect(read(saved) == read(again), f"{name}: the replay has other bytes")
    print(f"{name}: {told}")
    expect(told["updates"] > 0 and told["ranks"] == args[args.index("--workers") + 1], f"{name}: {told}")
    return where, told


RUNS = {  # every asynchronous row with locking slice, and what else makes bits
    "agn": ("--algorithm", "agn", "--model", "mlp:32", "--epochs", 4, "--batch", 10, *SLOW),
    "downpour": ("--algorithm", "downpour", "--model", "softmax", "--epochs", 4, "--batch", 10, *SLOW),
    "downpour-easy": ("--algorithm", "downpour-easy", "--model", "mlp:16", "--epochs", 3, "--batch", 10, *SLOW),
    "momentum": ("--algorithm", "agn", "--server-optimizer", "momentum", "--lr", "0.01", "--window", 1, "--steps", 60, *SLOW),
    "replicas": ("--algorithm", "downpour", "--replicas", 2, "--epochs", 2, "--batch", 10, *SLOW),
    "refusing": ("--algorithm", "agn", "--max-staleness", 0, "--epochs", 4, "--batch", 10, *SLOW),
    "target": ("--algorithm", "agn", "--target-accuracy", "0.7", "--epochs", 40, "--batch", 10, *SLOW),
    "ssp": ("--algorithm", "ssp", "--staleness-bound", 1, "--epochs", 3, "--batch", 10, *SLOW),
    "dynsgd": ("--algorithm", "dynsgd", "--epochs", 3, "--batch", 10, *SLOW),
    "aeasgd": ("--algorithm", "aeasgd", "--model", "mlp:16", "--window", 4, "--epochs", 3, "--batch", 10, *SLOW),
    "eamsgd": ("--algorithm", "eamsgd", "--profile", "dist-keras", "--epochs", 4, "--batch", 10, *SLOW),
    "deltas": ("--algorithm", "downpour", "--profile", "dist-keras", "--epochs", 3, "--batch", 10, *SLOW),
    "extras": ("--algorithm", "agn", "--lr-schedule", "exponential:steps=10,rate=.9", "--warmup", 5, "--clip-norm", 1,
               "--weight-decay", ".001", "--epochs", 3, "--batch", 10, *SLOW),
    "parts": ("--algorithm", "agn", "--model", "mlp:24", "--ps-tasks", 2, "--partition", "fixed:3", "--epochs", 3, *SLOW),
}


def test_replays_are_equal_bit_for_bit(bench):
    for name, args in RUNS.items():
        check(bench, name, *DATA, *args)


def test_slices_on_shards_of_two_ps_tasks(bench):
    """Kernels of two slices, three shards a ps task, gradients sent layer by layer, and a rank that comes late."""
    psds = [bench.psd(shards=3), bench.psd(shards=3)]
    where = os.path.join(bench.dir, "rec")
    ps = ",".join(p.endpoint for p in psds)

    def train(rank, *args):
        return bench.dtworker("train", "--ps", ps, "--job", "j", "--rank", rank, "--workers", 3, "--algorithm", "downpour",
                              "--model", "mlp:5000,60", "--steps", 12, "--batch", 10, *DATA, "--record", where, *args)

    saved = os.path.join(bench.dir, "saved")
    workers = [train(0, "--save", saved), train(1, "--overlap"), train(2, "--step-delay", 20),
               train(3, "--threads", 1, "--wait-for-step", 4)]
    for worker in workers:
        worker.expect_exit(0)
    for psd in psds:
        psd.stop()
    again = os.path.join(bench.dir, "again")
    told = json.loads(replay(bench, where, "--json", "--save", again).out())
    expect(told["ranks"] == 4 and read(saved) == read(again), f"{told}")


def fails(bench, where, code, *words, args=()):
    worker = bench.dtworker("replay", where, *args)
    worker.expect_exit(code)
    lines = worker.err().splitlines()
    expect(len(lines) == 1 and all(w in lines[0] for w in words), f"one line with {words}: {lines}")


def changed(bench, where, name, change):
    """A copy of the record with a file put through change(bytes); None: without it."""
    copy = os.path.join(bench.dir, "changed")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(where, copy)
    path = os.path.join(copy, name)
    data = change(read(path))
    os.unlink(path)
    if data is not None:
        with open(path, "wb") as f:
            f.write(data)
    return copy


def test_what_is_wrong_is_named(bench):
    where, saved = record(bench, "rec", *DATA, "--algorithm", "agn", "--epochs", 3, "--batch", 10, *SLOW)
    other, _ = record(bench, "other", *DATA, "--algorithm", "agn", "--epochs", 3, "--batch", 10, *SLOW)
    fails(bench, changed(bench, where, "rank-1.rec", lambda b: None), 66, "no record of rank 1 of 3")
    fails(bench, changed(bench, where, "rank-2.rec", lambda b: b[:len(b) // 2]), 65, "rank-2.rec", "was cut")
    fails(bench, changed(bench, where, "rank-2.rec", lambda b: b[:-1]), 65, "rank-2.rec", "was cut")
    fails(bench, changed(bench, where, "rank-0.rec", lambda b: b[:-40] + b"x" + b[-39:]), 65, "rank-0.rec", "is damaged")
    fails(bench, changed(bench, where, "rank-1.rec", lambda b: read(os.path.join(where, "rank-2.rec"))), 65,
          "is the record of rank 2")
    mixed = changed(bench, where, "rank-1.rec", lambda b: read(os.path.join(other, "rank-1.rec")))
    worker = bench.dtworker("replay", mixed)
    worker.expect_exit(65)
    expect("rank" in worker.err() and "exchange" in worker.err(), worker.err())
    fails(bench, os.path.join(bench.dir, "nowhere"), 66, "nowhere")
    fails(bench, harness.digits(), 66, "holds no rank-R.rec")
    fails(bench, where, 64, "--rank 7", args=("--rank", 7, "--save", saved + "x"))
    elsewhere = os.path.join(bench.dir, "data")
    shutil.copytree(harness.digits(), elsewhere)
    replay(bench, where, "--data", elsewhere, "--save", saved + "2")
    expect(read(saved) == read(saved + "2"), "data that have moved are the same data")
    os.rename(os.path.join(elsewhere, "t10k-images-idx3-ubyte.gz"), os.path.join(elsewhere, "train-images-idx3-ubyte.gz"))
    os.rename(os.path.join(elsewhere, "t10k-labels-idx1-ubyte.gz"), os.path.join(elsewhere, "train-labels-idx1-ubyte.gz"))
    fails(bench, where, 65, "is not what rank 0 was trained on", args=("--data", elsewhere))
    again = bench.dtworker("run", "--record", where, *DATA, "--algorithm", "agn", *SLOW)
    again.expect_exit(73)
    expect("rank-0.rec is there already" in again.err() or "rec is there already" in again.err(), again.err())


def test_a_worker_that_was_killed_or_stopped(bench):
    for i, number in enumerate((signal.SIGKILL, signal.SIGTERM)):
        psd = bench.psd()
        where = os.path.join(bench.dir, f"killed{i}")
        workers = [bench.dtworker("train", "--ps", psd.endpoint, "--job", "j", "--rank", r, "--workers", 2, *DATA,
                                  "--algorithm", "agn", "--batch", 10, "--step-delay", 20, "--steps", 100 if r == 0 else 10000,
                                  "--lease", "1s", "--record", where) for r in range(2)]
        log = os.path.join(where, "rank-1.rec")
        harness.wait_until(lambda: harness.has_content(log, 1001), "exchanges are recorded")
        workers[1].signal(number)
        workers[0].expect_exit(0)
        workers[1].wait()
        if number == signal.SIGKILL:
            fails(bench, where, 65, "rank-1.rec", "killed")
        else:  # between two exchanges, where nothing is unknown, or within one
            worker = bench.dtworker("replay", where)
            code = worker.wait()
            expect(code == 0 or "was stopped within an exchange" in worker.err(), worker.err())
        psd.stop()


def test_what_cannot_be_recorded_is_refused(bench):
    for algorithm, word in (("ssgd", "asynchronous"), ("easgd", "asynchronous"), ("hogwild", "do not exclude each other"),
                            ("local", "repeats itself")):
        workers = ("--workers", 1) if algorithm == "local" else ("--workers", 2)
        worker = bench.dtworker("run", "--model", "toy", "--algorithm", algorithm, "--record", os.path.join(bench.dir, "r"),
                                *workers)
        worker.expect_exit(64)
        lines = worker.err().splitlines()
        expect(len(lines) == 1 and "--record" in lines[0] and word in lines[0], f"{algorithm}: {lines}")
    expect(not os.path.exists(os.path.join(bench.dir, "r")), "nothing was made")


harness.main(test_replays_are_equal_bit_for_bit, test_slices_on_shards_of_two_ps_tasks, test_what_is_wrong_is_named,
             test_a_worker_that_was_killed_or_stopped, test_what_cannot_be_recorded_is_refused)
