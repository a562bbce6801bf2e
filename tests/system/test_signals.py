"""TERM on every kind of process; a second TERM; what kill -9 of psd leaves is taken over."""
import os
import signal
import time

import harness
from harness import expect

FOREVER = ("--steps", 1000000, "--step-delay", 10)


def is_training(psd):
    return any(j["step"] >= 3 for j in psd.status()["jobs"])


def test_idle_psd(bench):
    for ipc in (False, True):
        bench.psd(ipc=ipc, shards=3).stop()
    psd = bench.psd()
    psd.signal(signal.SIGINT)
    psd.expect_exit(0)


def test_psd_while_training(bench):
    psd = bench.psd(ipc=True, shards=2, stop_timeout="100s")
    workers = [bench.train(psd, r, 2, *FOREVER, "--retry-for", "2") for r in range(2)]
    harness.wait_until(lambda: is_training(psd), "it trains")
    begin = time.monotonic()
    psd.signal(signal.SIGTERM)
    psd.expect_exit(0)
    expect(time.monotonic() - begin < 80, "within stop_timeout")
    for w in workers:
        w.expect_exit(69)


def test_worker(bench):
    """TERM: LEAVE, save, and the signal again; the other one goes on."""
    psd = bench.psd(shards=2)
    model = os.path.join(bench.dir, "w.safetensors")
    first = bench.train(psd, 0, 2, *FOREVER, "--save", model)
    second = bench.train(psd, 1, 2, "--steps", 300, "--step-delay", 10)
    harness.wait_until(lambda: is_training(psd), "it trains")
    first.signal(signal.SIGTERM)
    first.expect_exit(-signal.SIGTERM)
    expect(os.path.exists(model), "it saved its values")
    second.expect_exit(0)
    job = psd.job()
    expect(job["counters"]["left"] == 2 and job["counters"]["lost"] == 0, f"counters {job['counters']}")
    psd.stop()


def test_twice_at_a_time(bench):
    """timeout(1) signals its child and then its group: that is one request, and it is done in full."""
    saved = os.path.join(bench.dir, "w.safetensors")
    worker = bench.dtworker("train", "--algorithm", "local", "--model", "toy", *FOREVER, "--save", saved)
    psd = bench.psd(ipc=True)
    trains = bench.train(psd, 0, 1, *FOREVER)
    harness.wait_until(lambda: is_training(psd), "it trains")
    for process in (worker, trains):
        process.signal(signal.SIGTERM)
        process.signal(signal.SIGTERM)
        process.expect_exit(-signal.SIGTERM)
    expect(os.path.getsize(saved) > 0, "the values are saved")
    os.unlink(saved)
    psd.signal(signal.SIGTERM)
    psd.signal(signal.SIGTERM)
    psd.expect_exit(0)
    bench.expect_no_files()


def second_term(bench):
    """How psd ends that waits for a stopped worker's acknowledgement and gets a second TERM."""
    psd = bench.psd(ipc=True, shards=2, stop_timeout="60s")
    worker = bench.train(psd, 0, 1, *FOREVER)
    harness.wait_until(lambda: is_training(psd), "it trains")
    worker.signal(signal.SIGSTOP)
    time.sleep(0.3)
    psd.signal(signal.SIGTERM)
    harness.wait_until(lambda: "stopping" in psd.err(), "psd has taken the first")
    time.sleep(0.4)  # two within 0.3 s are one
    psd.signal(signal.SIGTERM)
    begin = time.monotonic()
    code = psd.wait()
    if time.monotonic() - begin > 1.5:
        code = 0  # it may have waited until it would have ended anyway
    bench.expect_no_files()
    worker.kill()
    return code


def test_second_term(bench):
    """It ends at once; no socket and no lock remains. psd waits for two seconds only: another trial if they were over."""
    codes = [second_term(bench)]
    while codes[-1] == 0 and len(codes) < 5:
        codes.append(second_term(bench))
    expect(codes[-1] == -signal.SIGTERM, f"{codes}")


def test_stale_ipc(bench):
    psd = bench.psd(ipc=True, shards=2)
    second = bench.psd(endpoint=psd.endpoint, wait=False)
    second.expect_exit(69)
    expect(str(psd.pid) in second.err(), f"address in use, by pid {psd.pid}: {second.err()}")
    psd.signal(signal.SIGKILL)
    psd.expect_exit(-signal.SIGKILL)
    expect(os.path.exists(psd.endpoint[len("ipc://"):]), "kill -9 leaves the socket file")
    third = bench.psd(endpoint=psd.endpoint, shards=2)
    worker = bench.train(third, 0, 1, "--steps", 5)
    worker.expect_exit(0)
    third.stop()


test_stale_ipc.allow_files = (r"\.lock$", r"\.admin")  # of the psd that was killed

harness.main(test_idle_psd, test_psd_while_training, test_worker, test_twice_at_a_time, test_second_term, test_stale_ipc)
