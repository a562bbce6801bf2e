"""psd stopped (SIGSTOP) for twice the ZeroMQ heartbeat time-out, with parked requests in place: libzmq
cuts every peer; all come back by HELLO, nothing is lost and no lease has run."""
import signal
import time

import harness
from harness import expect

STALL = 32.0


def test_stall(bench):
    psd = bench.psd(shards=2)
    args = ("--data", harness.digits(), "--steps", 200, "--batch", 20, "--lr", "0.1", "--lease", "3", "--json", "--retry-for",
            "120")
    workers = [bench.train(psd, 0, 2, *args, model="softmax"),
               bench.train(psd, 1, 2, *args, "--step-delay", 150, model="softmax")]
    harness.wait_until(lambda: any(j["step"] >= 20 for j in psd.status()["jobs"]), "the job is at step 20")
    harness.wait_until(lambda: psd.job()["waiting"], "the fast worker's pull is parked")
    psd.signal(signal.SIGSTOP)
    time.sleep(STALL)
    psd.signal(signal.SIGCONT)
    for w in workers:
        w.expect_exit(0)
        expect(w.json()["steps"] == 200, f"{w.json()}")
    counters = psd.job()["counters"]
    expect(counters["lost"] == 0, f"time in which psd did not turn does not run: {counters}")
    expect(counters["stale"] == 0, f"{counters}")
    psd.stop()


harness.main(test_stall)
