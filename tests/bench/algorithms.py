#!/usr/bin/python3
"""algorithms.py - which algorithm? Every algorithm with its own rates on the same data, first with equal workers, then
with one that is four times slower than the others; the yardstick, local, in the same run. Prints two Markdown tables
(those of the README) or, with --json, one object.

The second table is made with waits that are much longer than a step takes, so that they are what makes a worker slow,
not the machine. PSD_BIN_DIR names the programs (default: build/release/bin).
"""
import argparse
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DTWORKER = os.path.join(os.environ.get("PSD_BIN_DIR", os.path.join(ROOT, "build/release/bin")), "dtworker")


def options():
    p = argparse.ArgumentParser(description="Compare the algorithms.")
    p.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    p.add_argument("--model", default="softmax")
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--workers", type=int, default=3)
    p.add_argument("--wait", type=int, default=5, help="milliseconds a step of the fast workers of the second table")
    p.add_argument("--algorithms", help="a,b,...; default: all")
    p.add_argument("--json", action="store_true")
    return p.parse_args()


def names(given):
    if given:
        return given.split(",")
    text = subprocess.run([DTWORKER, "train", "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.search(r"--algorithm NAME\s+(.*?)\(default", text, re.S).group(1)
    return [n for n in re.split(r",\s*|\s+or\s+", " ".join(listed.split())) if n != "local"]


def run(o, algorithm, workers, *more):
    done = subprocess.run([DTWORKER, "run", "--algorithm", algorithm, "--workers", str(workers), "--model", o.model,
                           "--data", o.data, "--epochs", str(o.epochs), "--threads", "1", "--log-level", "warning",
                           "--json", *more], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{algorithm}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def with_delays(o, algorithm, *delays):
    return run(o, algorithm, len(delays), "--step-delay", ",".join(map(str, delays)))


def seconds(report):
    """Of each worker, the first first."""
    return sorted(w["seconds"] for w in report["workers_detail"])


def staleness(report):
    s = report.get("staleness")
    return f"{s['p50']} / {s['p99']} / {s['max']}" if s else "-"


def equal_row(o, algorithm, local):
    r = run(o, algorithm, o.workers)
    return {"algorithm": algorithm, "accuracy": r["test_accuracy"], "seconds": seconds(r)[-1],
            "samples_per_second": r["samples_per_second"],
            "ratio": r["samples_per_second"] / local["samples_per_second"], "staleness": staleness(r)}


def slow_row(o, algorithm):
    fast = with_delays(o, algorithm, *[o.wait] * o.workers)
    slow = with_delays(o, algorithm, *[o.wait] * (o.workers - 1), 4 * o.wait)
    return {"algorithm": algorithm, "equal_seconds": seconds(fast)[-1], "fast_seconds": seconds(slow)[-2],
            "all_seconds": seconds(slow)[-1], "fast_ratio": seconds(slow)[-2] / seconds(fast)[-1],
            "equal_accuracy": fast["test_accuracy"], "slow_accuracy": slow["test_accuracy"],
            "staleness": staleness(slow)}


def print_equal(rows):
    print("| algorithm | test accuracy | seconds | samples/s | x local | staleness p50 / p99 / max |")
    print("|---|---|---|---|---|---|")
    for r in rows:
        print(f"| `{r['algorithm']}` | {r['accuracy']:.4f} | {r['seconds']:.2f} | {r['samples_per_second']:,.0f} | "
              f"{r['ratio']:.2f} | {r['staleness']} |")


def print_slow(rows):
    print("\n| algorithm | all equal: s | one 4 x slower: fast ones done, s | all done, s | fast ones' time grows | "
          "accuracy: equal | one slower | staleness p50 / p99 / max |")
    print("|---|---|---|---|---|---|---|---|")
    for r in rows:
        print(f"| `{r['algorithm']}` | {r['equal_seconds']:.1f} | {r['fast_seconds']:.1f} | {r['all_seconds']:.1f} | "
              f"x {r['fast_ratio']:.2f} | {r['equal_accuracy']:.4f} | {r['slow_accuracy']:.4f} | {r['staleness']} |")


def main():
    o = options()
    local = run(o, "local", 1)
    equal = [{"algorithm": "local", "accuracy": local["test_accuracy"], "seconds": local["seconds"],
              "samples_per_second": local["samples_per_second"], "ratio": 1.0, "staleness": "-"}]
    equal += [equal_row(o, a, local) for a in names(o.algorithms)]
    if not o.json:
        print_equal(equal)
        sys.stdout.flush()
    slow = [slow_row(o, a) for a in names(o.algorithms)]
    if o.json:
        print(json.dumps({"equal": equal, "one_slow": slow}))
    else:
        print_slow(slow)


main()
