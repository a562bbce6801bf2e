"""dtworker compare: each algorithm gets its run, the table and the object agree, a picture is drawn, failures are told."""
import os
import re
import shutil
import signal

import harness
from harness import Skipped, expect

DATA = harness.DIGITS
SHORT = ("--data", DATA, "--epochs", 2, "--batch", 50, "--threads", 1)


def test_json(bench):
    """The same samples by each; the slow rank costs the synchronous one its time, the asynchronous one not."""
    run = bench.dtworker("compare", *SHORT, "--algorithms", "ssgd,hogwild", "--step-delay", 5, "--slow", "1=100", "--repeat", 2,
                         "--target", 0.3, "--json")
    run.expect_exit(0)
    result = run.json()
    entries = {e["algorithm"]: e for e in result["algorithms"]}
    expect(list(entries) == ["local", "ssgd", "hogwild"], f"{list(entries)}")
    for name, e in entries.items():
        expect(e["exit_code"] == 0 and e["runs"] == 2, f"{name}: {e['exit_code']}, {e['runs']}")
        expect(e["run"]["samples"] == 3000, f"{name}: two epochs of 1500 rows: {e['run']['samples']}")
        expect(0 < e["run"]["seconds_to_target"] <= e["run"]["seconds"], f"{name}: {e['run']['seconds_to_target']}")
        expect(len(e["run"]["curve"]) > 1 and e["run"]["curve"][-1][1] == 3000, f"{name}: {e['run']['curve'][-1]}")
    expect(entries["local"]["slowed"] is None and entries["local"]["speed_up"] == 1, "local is the yardstick")
    ssgd, hogwild = entries["ssgd"], entries["hogwild"]
    expect(ssgd["loss_spread"] < 1e-5, f"rounds are repeatable: {ssgd['loss_spread']}")
    # 30 steps of 650 parameters and the first pull of each of two workers
    expect(ssgd["run"]["pushed_bytes"] == 2 * 30 * 650 * 4, f"{ssgd['run']['pushed_bytes']}")
    expect(ssgd["run"]["pulled_bytes"] == 2 * 31 * 650 * 4, f"{ssgd['run']['pulled_bytes']}")
    expect(ssgd["growth"] > 2 * hogwild["growth"], f"{ssgd['growth']} and {hogwild['growth']}")
    expect(hogwild["run"]["staleness"]["pushes"] == 60, f"{hogwild['run']['staleness']}")
    answers = {r["question"]: r["algorithm"] for r in result["recommendations"]}
    expect(answers["most tolerant of a slow machine"] == "hogwild", f"{answers}")


def test_text_and_plot(bench):
    if not shutil.which("gnuplot"):
        raise Skipped("no gnuplot")
    svg = os.path.join(bench.dir, "it's.svg")
    run = bench.dtworker("compare", *SHORT, "--algorithms", "agn", "--workers", 3, "--plot", svg)
    run.expect_exit(0)
    names = re.findall(r"^\| (\S+)", run.out(), re.M)
    expect(names == ["algorithm", "local", "agn"], f"{run.out()}")
    widths = {len(line) for line in run.out().splitlines() if line.startswith("|")}
    expect(len(widths) == 1, f"columns are aligned: {run.out()}")
    expect(re.search(r"^most tolerant of a slow machine\s+-: not measured: give --slow", run.out(), re.M), run.out())
    expect(run.err() == "", f"{run.err()}")
    with open(svg, encoding="utf-8") as f:
        drawn = f.read()
    expect(drawn.count("<svg") == 1 and "</svg>" in drawn and "local" in drawn and "agn" in drawn, drawn[:300])
    os.unlink(svg)


def test_failure_is_told(bench):
    """A rate that diverges: its row has the exit code, which is that of the whole, too; the others are there."""
    run = bench.dtworker("compare", *SHORT, "--algorithms", "ssgd,sagn", "--model", "linear", "--lr", "1e9", "--log-level", "err")
    run.expect_exit(65)
    expect(re.search(r"^\| ssgd .*failed: exit code 65", run.out(), re.M), run.out())
    expect(re.search(r"^\| local .*failed", run.out(), re.M), run.out())  # it has the same rate
    expect(re.search(r"^\| sagn .*[0-9] \|$", run.out(), re.M), run.out())  # adam's steps are of its rate
    expect(re.search(r"^most reproducible +sagn:", run.out(), re.M), run.out())


def test_a_gnuplot_that_hangs(bench):
    """SIGINT ends it and compare; the table is there, no picture and nothing beside its place."""
    folder = os.path.join(bench.dir, "bin")
    os.mkdir(folder)
    with open(os.path.join(folder, "gnuplot"), "w", encoding="ascii") as f:
        f.write(f"#!/bin/sh\ntouch {bench.dir}/hangs\nexec sleep 1000\n")
    os.chmod(os.path.join(folder, "gnuplot"), 0o755)
    argv = ("compare", *SHORT, "--algorithms", "agn", "--plot", os.path.join(bench.dir, "a.svg"))
    run = bench.dtworker(*argv, env={"PATH": f"{folder}:{os.environ['PATH']}"})
    harness.wait_until(lambda: os.path.exists(f"{bench.dir}/hangs"), "gnuplot runs")
    run.signal(signal.SIGINT)
    run.expect_exit(-signal.SIGINT)
    expect("most reproducible" in run.out() and run.err() == "", run.out() + run.err())
    left = [name for name in os.listdir(bench.dir) if "svg" in name]
    expect(not left, f"{left}")


harness.main(test_json, test_text_and_plot, test_failure_is_told, test_a_gnuplot_that_hangs)
