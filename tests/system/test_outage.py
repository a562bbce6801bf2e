"""The network between one worker and psd: gone for longer than the lease, cut in mid-stream, an answer
lost at the end; and members that come and go around the same step."""
import random
import signal
import time

import harness
from harness import expect

DIGITS = ("--batch", 20, "--lr", "0.1", "--json")


def step_of(psd):
    return max((j["step"] for j in psd.status()["jobs"]), default=0)


def state_of(psd):
    return psd.job()["state"]


def test_longer_than_every_lease(bench):
    psd = bench.psd(shards=1)
    proxies = [bench.proxy(psd) for _ in range(2)]
    workers = [bench.train(proxies[rank].endpoint, rank, 2, "--steps", 150, "--step-delay", 20, "--lease", "1", "--json")
               for rank in range(2)]
    harness.wait_until(lambda: step_of(psd) >= 10, "the job is at step 10")
    for proxy in proxies:
        proxy.hold()
    harness.wait_until(lambda: state_of(psd) == "suspended", "the job is suspended")
    time.sleep(1)
    for proxy in proxies:
        proxy.release()
    for w in workers:
        w.expect_exit(0)
    job = psd.job()
    expect(job["state"] == "complete" and job["step"] >= 150, f"{job['state']} at {job['step']}")
    expect(job["counters"]["lost"] >= 2 and job["counters"]["joined"] >= 2, f"{job['counters']}")
    psd.stop()


def test_cut_in_mid_stream(bench):
    """Every push is applied once: an equal run without cuts gives the same weights."""
    import os

    import weights
    psd = bench.psd(shards=1)
    proxy = bench.proxy(psd)
    path = [os.path.join(bench.dir, name) for name in ("cut.safetensors", "whole.safetensors")]
    args = ("--data", harness.digits(), *DIGITS, "--steps", 200, "--step-delay", 10, "--threads", 1)
    workers = [bench.train(proxy.endpoint, 0, 2, *args, "--save", path[0], model="softmax"),
               bench.train(psd, 1, 2, *args, model="softmax")]
    rng = random.Random(7)
    while all(w.is_alive() for w in workers):
        proxy.cut_after(rng.randrange(1, 20000))
        time.sleep(0.5)
    for w in workers:
        w.expect_exit(0)
        expect(w.json()["stale_dropped"] == 0, f"{w.json()}")
    expect(proxy.n_cut >= 3, f"only {proxy.n_cut} cuts")
    counters = psd.job()["counters"]
    expect(counters["lost"] == 0, f"a reconnect within the lease loses nobody: {counters}")
    psd.stop()
    whole = bench.psd(shards=1)
    again = [bench.train(whole, rank, 2, *args[:-4], "--threads", 1, *(["--save", path[1]] if rank == 0 else []),
                         model="softmax") for rank in range(2)]
    for w in again:
        w.expect_exit(0)
    whole.stop()
    far = weights.distance(weights.load(path[0]), weights.load(path[1]))
    expect(far <= 1e-5, f"with {proxy.n_cut} cuts the weights differ by {far:g}")


def lose_the_answer(bench, come_back):
    psd = bench.psd(shards=1)
    proxy = bench.proxy(psd)
    seen = []

    def watch(data):
        if b"\x95\x01\x03" in data:  # LEAVE's header: an array of 5, version 1, op 3
            seen.append(1)
            proxy.drop(True)
    proxy.on_up = watch
    worker = bench.train(proxy.endpoint, 0, 1, "--steps", 20, "--retry-for", "3", "--json")
    harness.wait_until(lambda: seen, "LEAVE was sent")
    time.sleep(0.3)
    if come_back:
        proxy.on_up = None
        proxy.cut()
        proxy.drop(False)
    worker.expect_exit(0)
    expect(worker.json()["steps"] == 20, f"{worker.json()}")
    expect(psd.job()["state"] == "complete", "psd has taken the LEAVE")
    psd.stop()


def test_answer_to_leave_is_lost(bench):
    lose_the_answer(bench, True)


def test_psd_is_silent_after_leave(bench):
    lose_the_answer(bench, False)


def test_last_leaves_while_one_joins(bench):
    """Around the same step: no hang; the new one trains on, or finds the job complete."""
    rng = random.Random(3)
    for i in range(12):
        psd = bench.psd(shards=2)
        old = bench.train(psd, 0, 1, "--steps", 40, "--step-delay", 5, "--lease", "2")
        harness.wait_until(lambda psd=psd: step_of(psd) >= 5, "the job is at step 5")
        time.sleep(rng.uniform(0, 0.4))
        new = bench.train(psd, 1, 1, "--steps", 60, "--lease", "2")
        old.expect_exit(0)
        code = new.wait()
        expect(code in (0, 73), f"trial {i}: the new one ended with {code}")
        expect(state_of(psd) == "complete", f"trial {i}: the job is {state_of(psd)}")
        psd.stop()


def test_gone_for_good(bench):
    psd = bench.psd(shards=1)
    worker = bench.train(psd, 0, 1, "--steps", 2000, "--step-delay", 10, "--retry-for", "2")
    harness.wait_until(lambda: step_of(psd) >= 5, "the job is at step 5")
    psd.signal(signal.SIGKILL)
    psd.expect_exit(-signal.SIGKILL)
    worker.expect_exit(69)
    expect(psd.endpoint in worker.err(), "the line names the address")


def test_psd_comes_back_without_the_job(bench):
    psd = bench.psd(shards=2)
    worker = bench.train(psd, 0, 1, "--steps", 2000, "--step-delay", 10, "--retry-for", "20", "--lease", "2")
    harness.wait_until(lambda: step_of(psd) >= 5, "the job is at step 5")
    psd.signal(signal.SIGKILL)
    psd.expect_exit(-signal.SIGKILL)
    again = bench.psd(endpoint=psd.endpoint, shards=2)
    worker.expect_exit(75)
    expect("without job" in worker.err(), f"the reason is told: {worker.err()[-300:]}")
    again.stop()


KILLED = (r"psd\.admin",)  # kill -9 of psd may leave its socket and lock; the next start takes them over
test_gone_for_good.allow_files = test_psd_comes_back_without_the_job.allow_files = KILLED

harness.main(test_longer_than_every_lease, test_cut_in_mid_stream, test_answer_to_leave_is_lost,
             test_psd_is_silent_after_leave, test_last_leaves_while_one_joins, test_gone_for_good,
             test_psd_comes_back_without_the_job)
