"""A rank beyond those expected joins a job that runs: it counts from the step that its JOIN named."""
import harness
from harness import expect

TRAIN = ("--batch", 20, "--lr", "0.1", "--step-delay", 5, "--json")


def test_late(bench):
    psd = bench.psd(shards=3)
    args = ("--data", harness.digits(), *TRAIN, "--steps", 600)
    workers = [bench.train(psd, rank, 2, *args, model="softmax") for rank in range(2)]
    harness.wait_until(lambda: any(j["step"] >= 10 for j in psd.status()["jobs"]), "the job is at step 10")
    late = bench.train(psd, 2, 2, *args, model="softmax")
    for w in [*workers, late]:
        w.expect_exit(0)
    job = psd.job()
    expect(job["state"] == "complete" and job["step"] == 600, f"{job['state']} at {job['step']}")
    expect(job["counters"]["joined"] == 1, f"counters {job['counters']}")
    member = [m for m in job["members"] if m["rank"] == 2][0]
    expect(member["first"] > 10 and member["state"] == "left", f"member {member}")
    expect(job["counters"]["stale"] == 0, "the round in progress was not disturbed")
    psd.stop()


def test_past_the_end(bench):
    """A joiner whose first step is past its end leaves at once."""
    psd = bench.psd(shards=1)
    first = bench.train(psd, 0, 1, "--steps", 400, "--step-delay", 10)
    harness.wait_until(lambda: any(j["step"] >= 20 for j in psd.status()["jobs"]), "the job is at step 20")
    late = bench.train(psd, 1, 1, "--steps", 5)
    late.wait()
    expect(first.is_alive(), "the late one ended long before")
    first.expect_exit(0)
    psd.stop()


harness.main(test_late, test_past_the_end)
