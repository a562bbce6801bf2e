"""--aggregate 2 of 3 workers, one of them slow: the fast two are not held up, the slow one's gradients
are late, dropped and told."""
import time

import harness
from harness import expect

STEPS = 60
TRAIN = ("--steps", STEPS, "--aggregate", 2, "--batch", 10, "--lr", "0.1", "--json")


def test_backup_worker(bench):
    psd = bench.psd(shards=2)
    args = ("--data", harness.digits(), *TRAIN)
    slow = bench.train(psd, 2, 3, *args, "--step-delay", 400, model="softmax")
    fast = [bench.train(psd, rank, 3, *args, "--step-delay", 20, model="softmax") for rank in range(2)]
    begin = time.monotonic()
    for w in fast:
        w.expect_exit(0)
    seconds = time.monotonic() - begin
    # Held up by the slow one they would need 60 x 0.4 s = 24 s.
    expect(seconds < STEPS * 0.4 * 0.75, f"the fast workers took {seconds:.1f} s")
    slow.expect_exit(0)
    told = slow.json()
    expect(told["stale_dropped"] + told["partial"] > 0, f"the slow one was told: {told}")
    for w in fast:
        expect(w.json()["steps"] == STEPS, f"steps {w.json()['steps']}")
    counters = psd.job()["counters"]
    expect(counters["stale"] > 0, f"psd counts what it drops: {counters}")
    psd.stop()


harness.main(test_backup_worker)
