#!/usr/bin/python3
"""compare_peers.py - the same training and the same transfers by dtworker and psd, and by software that nobody here
wrote: PyTorch (one process; DistributedDataParallel with gloo; RPC) and OpenMPI, side by side in one run.

    tests/bench/compare_peers.py [--build DIR] [--seconds S] [--repeat N] [--max-mib N] [--only WHAT] [--models A;B] [--json]

On demand: nothing decides by these timings. What is not installed is skipped with a line (tests/run.sh --slow installs
it). Wrong values, or a training that does not learn, end it with 1. All on loopback or ipc, each run bounded in time,
nothing is left behind.

Training. Both sides read the same rows (Fashion-MNIST, else the digits of tests/data) from one file before time is
taken, as float32 in memory; batch 64 a worker, SGD, one thread a process, models with the same layers and initial
values. Both sides shuffle each epoch, gather the rows of each batch, take as many steps, and none tests in
between. Timed is the loop of steps alone: no start of processes, no reading, no first values, of ours not the
first step and of PyTorch not the first ten. DDP averages gradients over tcp; ssgd is measured as `dtworker run` has it,
over ipc, the same with --overlap (DDP overlaps as well), and over tcp. `run` binds each worker to a processor of
its own where there are two, ours over tcp are bound alike; DDP's processes are measured as they come, and bound as well.

Transfers. One server and one client over tcp on loopback, one request after the other: rpc_sync of a gradient that the
server adds at once (w -= a * g), rpc_sync of the values, against bench_transport's serial push and pull; its push_pull
against MPI_Allreduce of two processes, since that is what each is to a step of training. GB/s are bytes of the
variable a second, once a request.

Each round measures ours and theirs one after the other; a ratio is that of one round, told are the medians over the
rounds and the least and largest ratio."""
import argparse
import gzip
import json
import math
import os
import shutil
import signal
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(ROOT, "tests", "bench")
SIZES = (64, 1 << 20, 16 << 20, 64 << 20, 256 << 20)
BATCH, RATE, WORKERS = 64, 0.1, 2
START = 120.0  # seconds for what is not timed: imports, reading, first values


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog="Without --only: both.")
    p.add_argument("--build", default=None, metavar="DIR", help="where our programs are built (default build/release)")
    p.add_argument("--seconds", type=float, default=1, metavar="S", help="of one measurement (default 1)")
    p.add_argument("--repeat", type=int, default=3, metavar="N", help="rounds (default 3)")
    p.add_argument("--max-mib", type=int, default=64, metavar="N", help="largest transfer (default 64; up to 256)")
    p.add_argument("--only", choices=("training", "transfers"), default=None)
    p.add_argument("--models", default="softmax;mlp:128;mlp:1024", metavar="A;B", help="of the training (default %(default)s)")
    p.add_argument("--json", action="store_true", help="one JSON object on stdout, and nothing else there")
    o = p.parse_args()
    if not (0 < o.seconds <= 60 and o.repeat >= 1 and o.max_mib >= 1):
        p.error("--seconds is above 0 and at most 60, --repeat and --max-mib are at least 1")
    return o


OPTIONS = options()
if OPTIONS.build:
    os.environ["PSD_BIN_DIR"] = os.path.join(os.path.abspath(OPTIONS.build), "bin")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
import harness
from harness import expect


def say(text):
    print(text, file=sys.stderr if OPTIONS.json else sys.stdout, flush=True)


# Data.

def idx(folder, name):
    """An IDX file of bytes, plain or gzip."""
    import numpy
    path = os.path.join(folder, name)
    with gzip.open(path + ".gz") if os.path.exists(path + ".gz") else open(path, "rb") as f:
        data = f.read()
    dims = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return numpy.frombuffer(data, "u1", offset=4 + 4 * data[3]).reshape(dims)


def rows(bench):
    """One .npz of the training rows, for both sides: pixels are divided by 255."""
    import numpy
    folder = harness.FASHION if os.path.isdir(harness.FASHION) else harness.digits()
    x, y = idx(folder, "train-images-idx3-ubyte"), idx(folder, "train-labels-idx1-ubyte")
    path = os.path.join(bench.dir, "rows.npz")
    numpy.savez(path, x_train=x.reshape(len(y), -1), y_train=y)
    return path, f"{len(y)} rows of {os.path.basename(folder) if folder == harness.FASHION else 'the digits'}"


# Training: each returns samples/s, the loss before and after.

def finish(processes, seconds):
    for p in processes:
        p.expect_exit(0, seconds + START)
    return [p.json() for p in processes]


def trained(who, rate, before, after):
    expect(math.isfinite(before) and math.isfinite(after) and after < before,
           f"{who} has not learned: loss {before} at the start, {after} at the end")
    return {"rate": rate, "before": before, "after": after}


def common(path, model, steps):
    return ["--model", model, "--data", path, "--batch", BATCH, "--lr", RATE, "--steps", steps, "--threads", 1, "--json"]


def our_end(bench, who, reports, metrics):
    with open(os.path.join(bench.dir, metrics)) as f:
        lines = [json.loads(line) for line in f]
    first, last = lines[0], lines[-1]  # the first step waits until all have read their rows
    own = (last["samples"] - first["samples"]) / (last["seconds"] - first["seconds"])
    rate = own * sum(r["samples"] for r in reports) / last["samples"]
    return trained(who, rate, first["loss"], max(reports, key=lambda r: r["steps"])["train_loss"])


def by_local(bench, path, model, steps, bound):
    argv = ["train", "--algorithm", "local", "--metrics", "m", *common(path, model, steps)]
    return our_end(bench, "local", finish([bench.dtworker(*argv)], bound), "m")


def by_run(bench, path, model, steps, bound, *more):
    argv = ["run", "--workers", WORKERS, "--algorithm", "ssgd", *more, "--metrics", "m", *common(path, model, steps)]
    return our_end(bench, "ssgd", finish([bench.dtworker(*argv)], bound), "m")


def by_overlap(bench, path, model, steps, bound):
    return by_run(bench, path, model, steps, bound, "--overlap")


def bound_to(rank, *option):
    """Arguments after `option`: the processor that `dtworker run` gives this worker; none where it gives none."""
    mine = sorted(os.sched_getaffinity(0))
    return [*option, str(mine[rank])] if len(mine) == WORKERS else []


def by_tcp(bench, path, model, steps, bound):
    psd = bench.psd(together_bytes="256KiB")  # as it comes
    workers = [bench.train(psd, rank, WORKERS, "--metrics", f"m{rank}", *bound_to(rank, "--cpus"),
                           *common(path, model, steps)[2:], model=model) for rank in range(WORKERS)]
    reports = finish(workers, bound)
    psd.stop()
    return our_end(bench, "ssgd over tcp", reports, "m0")


def by_torch(bench, path, model, steps, bound, n=1, bind=False):
    store = os.path.join(bench.dir, f"store{bench.n}")
    started = [bench.start("torch", ["/usr/bin/python3", os.path.join(HERE, "peer_torch.py"), "train", path, model, str(BATCH),
                                     str(steps), str(RATE), str(rank), str(n), store, *(bound_to(rank) if bind else ())])
               for rank in range(n)]
    reports = finish(started, bound)
    rate = sum(r["samples"] for r in reports) / max(r["seconds"] for r in reports)
    return trained("PyTorch", rate, reports[0]["loss_before"], reports[0]["loss"])


def by_ddp(bench, path, model, steps, bound):
    return by_torch(bench, path, model, steps, bound, WORKERS)


def by_bound_ddp(bench, path, model, steps, bound):
    return by_torch(bench, path, model, steps, bound, WORKERS, True)


def steps_for(run, bench, path, model, workers):
    """As many as take us --seconds."""
    rate = run(bench, path, model, 100, 60)["rate"]
    return max(20, int(OPTIONS.seconds * rate / BATCH / workers))


def spread(ours, theirs):
    """Medians of both and of the ratios of the rounds."""
    ratios = [a / b for a, b in zip(ours, theirs)]
    return {"ours": statistics.median(ours), "peer": statistics.median(theirs), "ratio": statistics.median(ratios),
            "least": min(ratios), "most": max(ratios)}


def train_row(model, names, ours, theirs):
    """One pair of sides over all rounds."""
    a, b = ours[-1]["after"], theirs[-1]["after"]
    expect(abs(a - b) < 0.3 * theirs[-1]["before"], f"{model}: loss {a} by {names[0]}, {b} by {names[1]}")
    row = {"model": model, "by": names[0], "peer_by": names[1], "loss": a, "peer_loss": b,
           **spread([r["rate"] for r in ours], [r["rate"] for r in theirs])}
    say(f"{model:9} {names[0]:18} {row['ours']:11,.0f}  {names[1]:18} {row['peer']:11,.0f} {ratio_text(row)} "
        f"{a:8.4f} {b:8.4f}")
    return row


def ratio_text(row):
    return f"{row['ratio']:7.2f} {row['least']:6.2f} to {row['most']:.2f}".ljust(24)


PAIRS = ((1, {"local": by_local}, "PyTorch", by_torch),
         (WORKERS, {"ssgd, 2 workers": by_run, "ssgd --overlap": by_overlap, "ssgd over tcp": by_tcp}, "DDP, 2 processes", by_ddp),
         (WORKERS, {"ssgd, 2 workers": by_run}, "DDP, bound", by_bound_ddp))


def train_pair(bench, path, model, workers, ours, peer, run_peer):
    """A row for each of ours; the rounds are alike in length to the first of them."""
    steps = steps_for(next(iter(ours.values())), bench, path, model, workers)
    sides = {**ours, peer: run_peer}
    seen = {name: [] for name in sides}
    for _ in range(OPTIONS.repeat):
        for name, run in sides.items():
            seen[name].append(run(bench, path, model, steps, 100 * OPTIONS.seconds))
    return [train_row(model, (name, peer), seen[name], seen[peer]) for name in ours]


def training(bench):
    path, what = rows(bench)
    found = []
    say(f"\nTraining, samples/s: {what}, batch {BATCH} a worker, SGD, one thread a process")
    say(f"{'model':9} {'ours':18} {'samples/s':>11}  {'peer':18} {'samples/s':>11} {'ratio':>7} {'least to most':16} "
        f"{'loss':>8} {'peer':>8}")
    for model in OPTIONS.models.split(";"):
        for pair in PAIRS:
            found += train_pair(bench, path, model, *pair)
    return found


# Transfers: each returns requests a second by operation.

def by_rpc(bench, n_bytes):
    store = os.path.join(bench.dir, f"store{bench.n}")
    both = [bench.start("rpc", ["/usr/bin/python3", os.path.join(HERE, "peer_torch.py"), "rpc", str(n_bytes),
                                str(OPTIONS.seconds), str(rank), store]) for rank in range(2)]
    both[0].expect_exit(0, 20 * OPTIONS.seconds + START)
    report = finish(both[1:], 10)[0]
    expect(report["right"], f"PyTorch RPC: wrong values after pushes of {n_bytes} bytes")
    return {"push": report["push"], "pull": report["pull"]}


def compile_allreduce(bench):
    path = os.path.join(bench.dir, "peer_allreduce")
    bench.start("mpicc", ["mpicc", "-O2", "-o", path, os.path.join(HERE, "peer_allreduce.c")]).expect_exit(0)
    return path


def by_mpi(bench, program, n_bytes):
    settings = {"btl": "tcp,self", "btl_tcp_if_include": "lo", "oob_tcp_if_include": "lo", "plm": "isolated"}
    argv = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2"]
    for key, value in settings.items():
        argv += ["--mca", key, value]
    run = bench.start("mpirun", [*argv, program, str(n_bytes), str(OPTIONS.seconds)])
    report = finish([run], 20 * OPTIONS.seconds)[0]
    expect(report["right"], f"OpenMPI: a wrong sum of {n_bytes} bytes")
    return {"push_pull": report["allreduce"]}


def by_us(bench, n_bytes):
    """It checks its values by itself."""
    run = bench.start("bench_transport", [harness.program("bench_transport"), "--bytes", str(n_bytes), "--seconds",
                                          str(OPTIONS.seconds / 2), "--json"])
    report = finish([run], 100 * OPTIONS.seconds)[0]
    serial = {r["op"]: r["req/s"] for r in report["rows"]
              if (r["transport"], r["workers"], r["in flight"]) == ("tcp", 1, 1)}
    expect(set(serial) == {"push", "pull", "push_pull"}, f"bench_transport has no serial rows of {n_bytes} bytes")
    return serial


def transfer_row(n_bytes, op, peer, ours, theirs):
    row = {"bytes": n_bytes, "op": op, "peer_by": peer, **spread([r[op] for r in ours], [r[op] for r in theirs])}
    row["GB/s"], row["peer GB/s"] = (row[side] * n_bytes / 1e9 for side in ("ours", "peer"))
    say(f"{n_bytes:11,} {op:10} {row['ours']:11,.1f} {row['GB/s']:9.3g}  {peer:18} {row['peer']:11,.1f} "
        f"{row['peer GB/s']:9.3g} {ratio_text(row)}")
    return row


def transfers(bench, peers):
    found, program = [], compile_allreduce(bench) if "openmpi" in peers else None
    say("\nTransfers over tcp on loopback, one request after the other")
    say(f"{'bytes':>11} {'ours':10} {'requests/s':>11} {'GB/s':>9}  {'peer':18} {'requests/s':>11} {'GB/s':>9} {'ratio':>7} "
        "least to most")
    for n_bytes in [n for n in SIZES if n <= OPTIONS.max_mib << 20]:
        ours, rpc, mpi = [], [], []
        for _ in range(OPTIONS.repeat):
            ours.append(by_us(bench, n_bytes))
            if "torch" in peers:
                rpc.append(by_rpc(bench, n_bytes))
            if program:
                mpi.append(by_mpi(bench, program, n_bytes))
        found += [transfer_row(n_bytes, op, "PyTorch rpc_sync", ours, rpc) for op in ("push", "pull") if rpc]
        found += [transfer_row(n_bytes, "push_pull", "OpenMPI allreduce", ours, mpi)] if mpi else []
    return found


# All of it.

def installed(bench):
    """Which peers are here; a line for each that is not."""
    found, skipped = [], []
    torch = bench.start("torch", ["/usr/bin/python3", "-c", "import numpy, torch.distributed.rpc"])
    programs = shutil.which("mpirun") and shutil.which("mpicc")
    for name, here, package in (("torch", torch.wait(START) == 0, "python3-torch"),
                                ("openmpi", programs, "openmpi-bin and libopenmpi-dev")):
        if here:
            found.append(name)
        else:
            skipped.append(f"{name}: {package} not installed (tests/run.sh --slow installs it)")
            say(f"skipped: {skipped[-1]}")
    return found, skipped


def compare(bench):
    peers, skipped = installed(bench)
    report = {"seconds": OPTIONS.seconds, "repeat": OPTIONS.repeat, "load_before": os.getloadavg()[0], "skipped": skipped}
    if not peers:
        say("skipped: nothing to compare with")
    else:
        say(f"Medians of {OPTIONS.repeat} rounds of {OPTIONS.seconds:g} s; load average {report['load_before']:.2f} before")
    if "torch" in peers and OPTIONS.only != "transfers":
        report["training"] = training(bench)
    if peers and OPTIONS.only != "training":
        report["transfers"] = transfers(bench, peers)
    report["load_after"] = os.getloadavg()[0]
    bench.expect_nothing_left()
    if OPTIONS.json:
        print(json.dumps(report))


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    bench = harness.Bench()
    try:
        compare(bench)
    except harness.Skipped as why:
        say(f"skipped: {why}")
    except harness.Failed as what:
        ended = [p for p in bench.processes if p.popen.poll() != 0]
        print("".join(p.report() for p in ended), f"compare_peers: {what}", sep="", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        bench.close(False)
    return 0


sys.exit(main())
