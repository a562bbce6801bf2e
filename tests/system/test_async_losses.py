"""Losses in an asynchronous job: kill -9 of a worker, psd killed and started again without the job, psd gone
for good, one of two ps tasks gone."""
import harness
from asynchronous import expect_done, kill, start, wait_for_step
from harness import expect

ENDLESS = ("--steps", 1000000, "--step-delay", 10)


def test_kill_of_a_worker(bench):
    """The others do not wait for its lease; the job does, and counts it lost."""
    psd = bench.psd(shards=2)
    workers = [start(bench, psd, rank, 3, "--steps", 300, "--step-delay", 10, "--lease", "2") for rank in range(3)]
    wait_for_step(psd, 60)
    kill(workers[1])
    for w in (workers[0], workers[2]):
        expect_done(w, 300)
    harness.wait_until(lambda: psd.job()["state"] == "complete", "the job is complete without rank 1")
    job = psd.job()
    expect(job["counters"]["lost"] == 1 and job["counters"]["left"] == 2, f"{job['counters']}")
    states = {m["rank"]: m["state"] for m in job["members"]}
    expect(states == {0: "left", 1: "lost", 2: "left"}, f"{states}")
    psd.stop()


def test_kill_with_on_loss_fail(bench):
    psd = bench.psd(shards=2)
    workers = [start(bench, psd, rank, 2, *ENDLESS, "--lease", "1", "--on-loss", "fail") for rank in range(2)]
    wait_for_step(psd, 30)
    kill(workers[1])
    workers[0].expect_exit(75)
    expect("rank 1 was silent" in workers[0].err(), f"the reason names rank 1: {workers[0].err()[-300:]}")
    expect(psd.job()["state"] == "failed", f"{psd.job()}")
    psd.stop()


def test_another_takes_the_place_of_the_killed(bench):
    """The same rank again takes part at once; its steps are counted from 0."""
    psd = bench.psd(shards=2)
    first = start(bench, psd, 0, 2, "--steps", 200, "--step-delay", 10, "--lease", "1")
    second = start(bench, psd, 1, 2, *ENDLESS, "--lease", "1")
    wait_for_step(psd, 60)
    kill(second)
    again = start(bench, psd, 1, 2, "--steps", 30, "--lease", "1")
    expect_done(again, 30)
    expect_done(first, 200)
    expect(psd.job()["state"] == "complete", f"{psd.job()}")
    psd.stop()


def test_psd_comes_back_without_the_job(bench):
    psd = bench.psd(shards=2)
    workers = [start(bench, psd, rank, 2, *ENDLESS, "--retry-for", "20", "--lease", "2") for rank in range(2)]
    wait_for_step(psd, 30)
    kill(psd)
    again = bench.psd(endpoint=psd.endpoint, shards=2)
    for w in workers:
        w.expect_exit(75)
        expect("psd came back without job j" in w.err(), f"the reason is told: {w.err()[-300:]}")
        expect(w.err().count(" err: ") == 1, f"one line: {w.err()[-600:]}")
    again.stop()


def test_psd_is_gone_for_good(bench):
    psd = bench.psd(shards=2)
    workers = [start(bench, psd, rank, 2, *ENDLESS, "--retry-for", "2", "--lease", "2") for rank in range(2)]
    wait_for_step(psd, 30)
    kill(psd)
    for w in workers:
        w.expect_exit(69)
        expect(psd.endpoint in w.err(), f"the line names the address: {w.err()[-300:]}")


def test_one_of_two_ps_tasks_is_gone_for_good(bench):
    """The workers name that one; the other psd loses them, or is told that they leave, and goes on serving."""
    psds = [bench.psd(shards=2) for _ in range(2)]
    workers = [start(bench, psds, rank, 2, *ENDLESS, "--retry-for", "2", "--lease", "1") for rank in range(2)]
    wait_for_step(psds[0], 30)
    kill(psds[1])
    for w in workers:
        w.expect_exit(69)
        expect("ps task 1" in w.err() and psds[1].endpoint in w.err(), f"the line names it: {w.err()[-300:]}")
    harness.wait_until(lambda: all(m["state"] in ("lost", "left") for m in psds[0].job()["members"]), "nobody is a member")
    psds[0].stop()


KILLED = (r"psd\.admin",)  # kill -9 of psd may leave its socket and lock; the next start takes them over
for test in (test_psd_comes_back_without_the_job, test_psd_is_gone_for_good, test_one_of_two_ps_tasks_is_gone_for_good):
    test.allow_files = KILLED

harness.main(test_kill_of_a_worker, test_kill_with_on_loss_fail, test_another_takes_the_place_of_the_killed,
             test_psd_comes_back_without_the_job, test_psd_is_gone_for_good, test_one_of_two_ps_tasks_is_gone_for_good)
