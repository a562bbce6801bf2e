"""psctl placement: shapes, optimizers, ps tasks and the shards that hold the slices, as text and as
JSON; a job that does not exist, and no job at all."""
import json

import harness
from harness import expect

MODEL = "mlp:6000,50"  # two kernels of two slices, four variables of one
ARGS = ("--steps", 2, "--batch", 5, "--seed", 1)


def train(bench, psds, job="j"):
    worker = bench.train(",".join(p.endpoint for p in psds), 0, 1, "--data", harness.digits(), *ARGS, job=job, model=MODEL)
    worker.expect_exit(0)


def placement(psd, *args):
    done = psd.psctl("placement", "--json", *args)
    expect(done.returncode == 0 and not done.stderr, f"{done.returncode}: {done.stderr}")
    return json.loads(done.stdout)["jobs"]


def check_variable(v, task, shards):
    elements = 1
    for n in v["shape"]:
        elements *= n
    expect(v["elements"] == elements and v["bytes"] == 4 * elements, f"{v}")
    expect(v["optimizer"] == "sgd" and abs(v["params"]["lr"] - 0.1) < 1e-6, f"{v}")
    if v["ps_task"] != task:
        expect(v["shard_slices"] == [] and v["shard_bytes"] == [], f"another ps task's: {v}")
        return
    expect(len(v["shard_slices"]) == shards and sum(v["shard_bytes"]) == v["bytes"], f"{v}")
    expect(sum(v["shard_slices"]) == -(-elements // 262144), f"slices of 1 MiB: {v}")


def check_job(job, task, tasks, shards):
    expect((job["ps_task"], job["ps_tasks"], job["shards"], job["locking"]) == (task, tasks, shards, "slice"), f"{job}")
    expect([v["id"] for v in job["variables"]] == list(range(6)), "three layers of kernel and bias")
    for v in job["variables"]:
        check_variable(v, task, shards)
    held = [v for v in job["variables"] if v["ps_task"] == task]
    sums = [[sum(v[key][i] for v in held) for i in range(shards)] for key in ("shard_slices", "shard_bytes")]
    expect(sums == [job["shard_slices"], job["shard_bytes"]], f"sums {sums} of {job}")
    return {v["name"] for v in held}


def test_one_psd_with_three_shards(bench):
    psd = bench.psd(shards=3)
    expect(placement(psd) == [], "no job yet")
    train(bench, [psd])
    job, = placement(psd)
    expect(len(check_job(job, 0, 1, 3)) == 6, "all variables are here")
    expect(min(job["shard_slices"]) >= 1, f"every shard holds something: {job['shard_slices']}")
    shown = psd.psctl("placement", "j")
    expect(shown.returncode == 0, f"{shown.returncode}: {shown.stderr}")
    lines = shown.stdout.splitlines()
    expect(lines[0] == "job j: ps task 0 of 1, 3 shards, locking slice, 6 variables", lines[0])
    expect(lines[1] == "  0 dense1/kernel [64, 6000], 384000 elements (1.5 MiB), sgd lr=0.1, ps task 0: 2 slices: "
           "shard 0 1, shard 1 1", lines[1])
    expect(sum(line.startswith("  shard ") for line in lines) == 3, shown.stdout)
    psd.stop()


def test_two_ps_tasks_and_two_jobs(bench):
    psds = [bench.psd(shards=2), bench.psd(shards=3)]
    train(bench, psds, "first")
    train(bench, psds, "second")
    for name in ("first", "second"):
        held = [check_job(placement(psd, name)[0], task, 2, task + 2) for task, psd in enumerate(psds)]
        expect(held[0] and held[1] and len(held[0] | held[1]) == 6 and not held[0] & held[1], f"{held}")
    for psd in psds:
        expect(sorted(j["name"] for j in placement(psd)) == ["first", "second"], "all jobs without a name")
        psd.stop()


def test_what_is_not_there(bench):
    psd = bench.psd()
    expect(psd.psctl("placement").stdout == "psd has no job\n", "said in words")
    done = psd.psctl("placement", "nothing")
    expect(done.returncode == 64 and done.stderr == "psctl: there is no job nothing\n", f"{done.returncode}: {done.stderr}")
    done = psd.psctl("placement", "a", "b")
    expect(done.returncode == 64 and done.stderr.count("\n") == 1, f"{done.returncode}: {done.stderr}")
    done = psd.psctl("placement", "x" * 129)
    expect(done.returncode == 64 and "too long" in done.stderr, f"{done.returncode}: {done.stderr}")
    expect("placement [JOB]" in psd.psctl("--help").stdout, "in the help")
    psd.stop()


harness.main(test_one_psd_with_three_shards, test_two_ps_tasks_and_two_jobs, test_what_is_not_there)
