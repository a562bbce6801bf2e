"""worker/examples/minimal.c, built against libdtworker alone, against a real psd."""
import harness
from harness import expect


def test_minimal(bench):
    psd = bench.psd(shards=2)
    example = bench.start("minimal", [harness.program("minimal_example"), psd.endpoint])
    example.expect_exit(0)
    expect(example.out().strip(), "it prints what it found")
    expect(psd.status()["jobs"][0]["state"] == "complete", "its job is complete")
    psd.stop()


harness.main(test_minimal)
