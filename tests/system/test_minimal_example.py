"""worker/examples/minimal.c, built against libdtworker alone, against a real psd, more than once."""
import harness
from harness import expect


def test_minimal(bench):
    psd = bench.psd(shards=2)
    for _ in range(2):  # the second time psd still has the job of the first
        example = bench.start("minimal", [harness.program("minimal_example"), psd.endpoint])
        example.expect_exit(0)
        w = [float(word) for word in example.out().split()[2:]]
        expect(len(w) == 3 and all(abs(a - b) < 0.1 for a, b in zip(w, (1.5, -2.0, 0.5))), f"it finds w: {example.out()}")
        expect([j["state"] for j in psd.status()["jobs"]] == ["complete"], "its job is complete")
    psd.stop()


def test_three_workers_twice(bench):
    psd = bench.psd(shards=2)
    for _ in range(2):
        workers = [bench.start("minimal", [harness.program("minimal_example"), psd.endpoint, "j", str(rank), "3"])
                   for rank in range(3)]
        for worker in workers:
            worker.expect_exit(0)
        expect(len({worker.out() for worker in workers}) == 1, "all have the values of the last step")
        expect(psd.job()["counters"]["joined"] == 0, "each came to the new job from its start")
    psd.stop()


harness.main(test_minimal, test_three_workers_twice)
