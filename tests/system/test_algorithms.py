"""Every algorithm of the table with two ps tasks of three shards each and three workers: it learns, both
tasks hold variables, and everybody ends with 0."""
import json

import fashion
import harness
from harness import expect

STEPS = 300


def placement(psd, job):
    done = psd.psctl("--json", "placement", job)
    expect(done.returncode == 0, done.stderr)
    return json.loads(done.stdout)["jobs"][0]


def check_placement(psds, algorithm):
    """Each task holds some of the four variables; with locking none each of its shards serves all of them."""
    jobs = [placement(psd, algorithm) for psd in psds]
    held = [[v for v in job["variables"] if v["shard_slices"]] for job in jobs]
    expect(held[0] and held[1] and len(held[0]) + len(held[1]) == 4, f"{algorithm}: {held}")
    for job, variables in zip(jobs, held):
        locking, copies = ("none", 3) if algorithm == "hogwild" else ("slice", 1)
        expect(job["locking"] == locking and sum(job["shard_slices"]) == copies * len(variables), f"{algorithm}: {job}")


def train(bench, psds, algorithm):
    ps = ",".join(p.endpoint for p in psds)
    workers = [bench.dtworker("train", "--ps", ps, "--job", algorithm, "--rank", rank, "--workers", 3, "--algorithm",
                              algorithm, "--model", "mlp:32", "--data", harness.digits(), "--batch", 10, "--steps", STEPS,
                              "--threads", 1, "--seed", 3, "--json")
               for rank in range(3)]
    for w in workers:
        w.expect_exit(0)
    results = [w.json() for w in workers]
    print(f"{algorithm}: test accuracy {', '.join('%.3f' % r['test_accuracy'] for r in results)}, "
          f"{max(r['seconds'] for r in results):.1f} s")
    for r in results:
        expect(r["steps"] >= STEPS, f"{algorithm}: steps {r['steps']}")
        expect(r["ps_tasks"] == 2, f"{algorithm}: {r}")
    # the last to finish has seen all updates; chance is 0.1
    expect(max(r["test_accuracy"] for r in results) >= 0.6, f"{algorithm}: {[r['test_accuracy'] for r in results]}")


def test_each_learns_over_two_ps_tasks(bench):
    psds = [bench.psd(shards=3) for _ in range(2)]
    for algorithm in fashion.algorithms():
        train(bench, psds, algorithm)
        check_placement(psds, algorithm)
        for psd in psds:
            job = psd.job(algorithm)
            expect(job["state"] == "complete" and job["counters"]["lost"] == 0, f"{algorithm}: {job}")
            expect(job["counters"]["left"] == 3 and job["counters"]["refused"] == 0, f"{algorithm}: {job['counters']}")
    for psd in psds:
        psd.stop()


harness.main(test_each_learns_over_two_ps_tasks)
