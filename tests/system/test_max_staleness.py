"""--max-staleness: what is older is refused, counted by psd and told by the worker; the run ends with 0."""
import harness
from asynchronous import expect_done, start
from harness import expect

PUSHES = 66 + 66 + 20  # windows of 3 batches


def run(bench, staleness):
    """Two fast workers and a slow one; slow.json() and psd's counters."""
    psd = bench.psd(shards=2)
    workers = [start(bench, psd, rank, 3, "--steps", steps, "--max-staleness", staleness, "--step-delay", delay)
               for rank, (steps, delay) in enumerate(((198, 10), (198, 10), (60, 30)))]
    for w, steps in zip(workers, (198, 198, 60)):
        expect_done(w, steps)
    job = psd.job()
    expect(job["state"] == "complete" and job["counters"]["left"] == 3, f"{job}")
    psd.stop()
    return workers, job["counters"]


def test_none_at_all(bench):
    """0: only who pulled last may push. The slow one's windows are always overtaken while the others train."""
    workers, counters = run(bench, 0)
    results = [w.json() for w in workers]
    slow = results[2]
    expect(slow["stale_dropped"] >= 3, f"the slow one's gradients were refused: {slow}")
    expect("this worker was late" in workers[2].err(), f"and it says so: {workers[2].err()[-300:]}")
    expect(f"{slow['stale_dropped']} of its 20 gradients" in workers[2].err(), f"with numbers: {workers[2].err()[-300:]}")
    refused = sum(2 * r["stale_dropped"] + r["partial"] for r in results)  # kernel and bias, a slice each
    expect(counters["stale"] == refused, f"psd counts {counters['stale']} slices, the workers {refused}")
    expect(counters["applied"] + counters["stale"] == PUSHES * 2, f"each push has its fate: {counters}")
    expect(counters["applied"] >= 20, f"somebody gets through: {counters}")


def test_any(bench):
    workers, counters = run(bench, -1)
    expect(counters["stale"] == 0 and counters["applied"] == PUSHES * 2, f"{counters}")
    for w in workers:
        expect(w.json()["stale_dropped"] == 0 and "was late" not in w.err(), f"{w.json()}")


harness.main(test_none_at_all, test_any)
