"""One worker of three whose steps take eight times as long: in an asynchronous job the others are done
before it has done half of theirs; in a synchronous one all go at its pace."""
import json
import os

import harness
from harness import expect

FAST, SLOW = 10, 80  # milliseconds a step: far above what the gradient takes
STEPS = 100


def start(bench, psd, algorithm, steps, delays):
    """Rank r waits delays[r] ms in each step; its metrics go to r.jsonl."""
    return [bench.dtworker("train", "--ps", psd.endpoint, "--job", "j", "--rank", rank, "--workers", 3, "--algorithm",
                           algorithm, "--model", "softmax", "--data", harness.digits(), "--batch", 10, "--steps", steps,
                           "--step-delay", delay, "--threads", 1, "--metrics", path(bench, rank), "--json")
            for rank, delay in enumerate(delays)]


def path(bench, rank):
    return os.path.join(bench.dir, f"{rank}.jsonl")


def metrics(bench, rank):
    with open(path(bench, rank)) as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


def test_asynchronous(bench):
    psd = bench.psd(shards=2)
    workers = start(bench, psd, "agn", STEPS, (FAST, FAST, SLOW))
    for w in workers[:2]:
        w.expect_exit(0)
        expect(w.json()["steps"] == STEPS, f"{w.json()}")
    done = psd.job()["step"] - 2 * STEPS
    n = len(metrics(bench, 2))
    expect(workers[2].is_alive(), "the slow one is at work")
    expect(0 < done <= STEPS // 2, f"the fast ones have done {STEPS} steps each, the slow one {done}")
    # A line a second, and one at each end: the next line is of later than the end of the fast ones.
    harness.wait_until(lambda: len(metrics(bench, 2)) > n, "the slow one's next line of metrics")
    told = metrics(bench, 2)[n]["step"]
    expect(done <= told < STEPS, f"its metrics said {told} after {done}")
    workers[2].expect_exit(0)
    expect(workers[2].json()["steps"] == STEPS and workers[2].json()["unseen_rows"] == 0, f"{workers[2].json()}")
    expect(psd.job()["step"] == 3 * STEPS, f"the global step counts all batches: {psd.job()['step']}")
    psd.stop()


def test_synchronous(bench):
    psd = bench.psd(shards=2)
    steps = 40
    workers = start(bench, psd, "ssgd", steps, (FAST // 2, FAST // 2, SLOW // 2))
    for w in workers:
        w.expect_exit(0)
    for rank, w in enumerate(workers):
        expect(w.json()["steps"] == steps and w.json()["stale_dropped"] == 0, f"rank {rank}: {w.json()}")
        expect(w.json()["seconds"] >= steps * SLOW / 2000, f"rank {rank} was at the pace of the slow one: {w.json()}")
        expect(metrics(bench, rank)[-1]["step"] == steps, f"rank {rank}: {metrics(bench, rank)[-1]}")
    expect(psd.job()["step"] == steps, f"{psd.job()}")
    psd.stop()


harness.main(test_asynchronous, test_synchronous)
