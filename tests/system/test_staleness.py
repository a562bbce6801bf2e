"""Staleness as an asynchronous worker sees it: in each metrics line, in the final object of each worker and,
merged, of all; none of it in a synchronous job."""
import json
import os

import harness
from harness import expect


def run(bench, algorithm, *args):
    metrics = os.path.join(bench.dir, f"{algorithm}.jsonl")
    process = bench.dtworker("run", "--ps-tasks", 1, "--workers", 3, "--algorithm", algorithm, "--model", "softmax",
                             "--data", harness.digits(), "--batch", 10, "--epochs", 4, "--metrics", metrics, *args)
    process.expect_exit(0)
    with open(metrics, encoding="ascii") as f:
        return process, [json.loads(line) for line in f]


def check(counts, pushes):
    expect(counts["pushes"] == pushes == sum(counts["histogram"]), f"{pushes} pushes: {counts}")
    expect(counts["p50"] <= counts["p99"] <= counts["max"], f"in order: {counts}")
    expect(0 <= counts["mean"] <= counts["max"], f"the mean: {counts}")
    expect(not counts["histogram"] or counts["histogram"][-1] > 0, f"no zeros at the end: {counts}")


def test_asynchronous(bench):
    """1500 rows, 30 a step of all: 50 steps an epoch; agn pushes after 3 of them."""
    process, lines = run(bench, "agn", "--step-delay", "0,0,5", "--json")
    result = process.json()
    expect([d["rank"] for d in result["workers_detail"]] == [0, 1, 2], f"{result['workers_detail']}")
    for d in result["workers_detail"]:
        expect(d["steps"] == 200 and d["samples"] == 2000 and d["seconds"] > 0, f"{d}")
        check(d["staleness"], 67)
    check(result["staleness"], 201)
    expect(result["staleness"]["max"] == max(d["staleness"]["max"] for d in result["workers_detail"]), f"{result}")
    slow = result["workers_detail"][2]
    expect(slow["samples_per_second"] < result["workers_detail"][0]["samples_per_second"], f"rank 2 was slow: {result}")
    expect(slow["staleness"]["max"] > 0, f"the slow one was overtaken: {slow}")
    seen = [line["staleness"]["pushes"] for line in lines]
    expect(seen == sorted(seen) and seen[-1] == 67, f"cumulative: {seen}")


def test_the_line_for_people(bench):
    process, _ = run(bench, "downpour-easy")
    line = [text for text in process.out().splitlines() if text.startswith("staleness ")]
    expect(len(line) == 1 and "p50" in line[0] and "p99" in line[0] and "max" in line[0], process.out())


def test_synchronous(bench):
    process, lines = run(bench, "ssgd", "--json")
    expect(process.json()["staleness"] is None, "rounds have no staleness")
    expect(all(line["staleness"] is None for line in lines), f"{lines}")
    expect(all(d["staleness"] is None for d in process.json()["workers_detail"]), "nor have the workers")


harness.main(test_asynchronous, test_the_line_for_people, test_synchronous)
