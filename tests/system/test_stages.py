"""psctl status tells where the time of each shard of psd went: stages in seconds, messages, parked requests."""
import json
import os
import time

import harness
from harness import expect

STEPS, MODEL_BYTES = 200, 4 * (64 * 10 + 10)  # softmax on 8 x 8 pixels, ten classes
STAGES = {"idle", "receive", "decode", "apply", "reply", "other"}


def shards(psd, n):
    found = psd.status()["stages"]
    expect(sorted(s["shard"] for s in found) == list(range(n)), f"each shard once: {found}")
    return [s["total"] for s in sorted(found, key=lambda s: s["shard"])]


def spent(totals):
    expect(set(totals["seconds"]) == STAGES and min(totals["seconds"].values()) >= 0, f"{totals}")
    return sum(totals["seconds"].values())


def train(bench, psd):
    workers = [bench.train(psd.endpoint, rank, 2, "--data", harness.digits(), "--steps", STEPS, "--batch", 5,
                           *(("--step-delay", 5) if rank else ()), model="softmax") for rank in range(2)]
    for worker in workers:
        worker.expect_exit(0)


def test_the_stages_of_a_run(bench):
    """Rank 1 is late by 5 ms in each step: rank 0's requests are parked. One message in 16 tells how time is divided."""
    psd = bench.psd(shards=2)
    before = shards(psd, 2)
    train(bench, psd)
    after = shards(psd, 2)
    for old, new in zip(before, after):
        expect(all(new[key] >= old[key] for key in old if key != "seconds"), f"they only grow: {old}, {new}")
    seconds = {stage: sum(t["seconds"][stage] for t in after) for stage in STAGES}
    expect(all(s > 0 for s in seconds.values()), f"something in each stage: {seconds}")
    n = {key: sum(t[key] for t in after) for key in after[0] if key != "seconds"}
    expect(n["received"] >= 2 * STEPS and n["received_bytes"] > 2 * STEPS * MODEL_BYTES, f"all gradients: {n}")
    expect(n["sent"] >= 2 * STEPS and n["sent_bytes"] > STEPS * MODEL_BYTES, f"values, too: {n}")
    expect(n["parked"] >= STEPS // 10 and n["parked_seconds"] > 0.05, f"rank 0 waits nearly always: {n}")
    psd.stop()


def test_their_sum_is_the_time_that_passes(bench):
    psd = bench.psd(shards=2)
    t0 = time.monotonic()
    first = shards(psd, 2)
    t1 = time.monotonic()
    time.sleep(3)
    t2 = time.monotonic()
    second = shards(psd, 2)
    t3 = time.monotonic()
    for a, b in zip(first, second):
        grown = spent(b) - spent(a)
        # t2 - t1 to t3 - t0 went by between the answers; a slow machine may tell a part of a turn later
        expect(0.5 * (t2 - t1) <= grown <= t3 - t0 + 1.5, f"{grown} s more in {t3 - t0} s: {a}, {b}")
        expect(b["seconds"]["idle"] > a["seconds"]["idle"], f"nothing to do: {b}")
    psd.stop()


def cpu(psd):
    found = psd.status()["cpu"]
    expect(found["seconds"] >= found["recent_seconds"] >= 0, f"{found}")
    return found, {t["name"]: t for t in found["threads"]}


def test_the_time_of_threads(bench):
    """What psd says of its threads is what the kernel says of the whole process."""
    psd = bench.psd(shards=2)
    time.sleep(1.1)  # recent counts from a status that is a second old
    _, before = cpu(psd)
    time.sleep(1.1)
    train(bench, psd)
    found, threads = cpu(psd)
    expect(set(threads) == {"shard 0", "shard 1", "io 0", "io 1", "other"}, f"{threads}")
    with open(f"/proc/{psd.pid}/stat", encoding="ascii") as f:
        ticks = f.read().rsplit(")", 1)[1].split()[11:13]
    process = sum(int(t) for t in ticks) / os.sysconf("SC_CLK_TCK")
    told = sum(t["total"] for t in threads.values())
    # two numbers of the process are rounded down by up to a tick; it takes some more until it is read
    expect(0 < told <= process + 0.05 and process <= told + 0.5, f"{told} s, the process {process}")
    for name, t in threads.items():
        expect(abs(t["recent"] - (t["total"] - before[name]["total"])) < 1e-6, f"since the status before: {name} {t}")
    expect(sum(threads[f"io {i}"]["recent"] for i in range(2)) > 0, f"gradients came in: {threads}")
    expect(found["recent_seconds"] > 1, f"{found}")
    again, _ = cpu(psd)
    expect(again["recent_seconds"] > found["recent_seconds"] or again["recent_seconds"] >= 1,
           f"not from a moment ago: {found}, {again}")
    psd.stop()


def keys(value):
    """The form of a value: names and, of lists, that of each part."""
    if isinstance(value, dict):
        return {k: keys(v) for k, v in value.items()}
    return [keys(v) for v in value] if isinstance(value, list) else None


def test_psctl_says_what_psd_does(bench):
    """The other tests ask psd itself."""
    psd = bench.psd(shards=2)
    bench.train(psd, 0, 1, "--steps", 3).expect_exit(0)
    done = psd.psctl("--json", "status")
    expect(done.returncode == 0, done.stderr)
    shown, said = json.loads(done.stdout), psd.status()
    for both in (shown, said):
        both["jobs"][0]["members"][0].pop("silent_ms", None)
    expect(shown["jobs"] == said["jobs"] and said["jobs"][0]["step"] == 3, f"{shown['jobs']}, {said['jobs']}")
    expect(shown["incarnation"] == said["incarnation"] and said["incarnation"] in psd.err(), f"{shown}")
    expect(keys(shown) == keys(said), f"{shown}, {said}")
    psd.stop()


def test_as_text(bench):
    psd = bench.psd(shards=3)
    harness.wait_until(lambda: all(spent(t) > 0 for t in shards(psd, 3)), "each shard has turned")
    done = psd.psctl("status")
    lines = done.stdout.splitlines()[1:]
    expect(done.returncode == 0 and len(lines) == 4, f"{done.returncode}: {done.stdout}{done.stderr}")
    names = [part.strip().rsplit(" ", 2)[0] for part in lines.pop().split(" s: ")[1].split(",")]
    expect(names == [f"shard {i}" for i in range(3)] + [f"io {i}" for i in range(3)] + ["other"], f"{names}")
    for i, line in enumerate(lines):
        expect(line.startswith(f"shard {i}, last ") and " s: idle " in line and "; parked" not in line, line)
        shares = [float(part.split()[-2]) for part in line.split(": ")[1].split(", ")]
        expect(len(shares) == 6 and abs(sum(shares) - 100) < 0.5, f"shares {shares}: {line}")
    psd.stop()


harness.main(test_the_stages_of_a_run, test_their_sum_is_the_time_that_passes, test_the_time_of_threads,
             test_psctl_says_what_psd_does, test_as_text)
