"""worker/examples/minimal.c, built against libdtworker alone, against a real psd."""
import harness
from harness import expect


def test_minimal(bench):
    psd = bench.psd(shards=2)
    example = bench.start("minimal", [harness.program("minimal_example"), psd.endpoint])
    example.expect_exit(0)
    w = [float(word) for word in example.out().split()[2:]]
    expect(len(w) == 3 and all(abs(a - b) < 0.1 for a, b in zip(w, (1.5, -2.0, 0.5))), f"it finds w: {example.out()}")
    expect(psd.status()["jobs"][0]["state"] == "complete", "its job is complete")
    psd.stop()


harness.main(test_minimal)
