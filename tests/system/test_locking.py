"""--locking: variable trains with several shards and ps tasks, and psd says so; what does not go with a row is refused."""
import asynchronous
import harness
import refused
from harness import expect


def test_variable(bench):
    """mlp:520,520 has a variable of two slices: both have one home."""
    psds = [bench.psd(shards=2) for _ in range(2)]
    workers = [bench.dtworker("train", "--ps", ",".join(p.endpoint for p in psds), "--job", "j", "--rank", rank,
                              "--workers", 2, "--algorithm", "agn", "--model", "mlp:520,520", "--data", harness.digits(),
                              "--batch", 20, "--steps", 30, "--locking", "variable", "--threads", 1, "--json",
                              *(["--overlap"] if rank else [])) for rank in range(2)]
    for w in workers:
        asynchronous.expect_done(w, 30)
    homes = {}
    for psd in psds:
        done = bench.start("psctl", [harness.program("psctl"), "--admin", psd.admin, "--json", "placement", "j"])
        done.expect_exit(0)
        job = done.json() if "variables" in done.json() else done.json()["jobs"][0]
        expect(job["locking"] == "variable", f"{job}")
        homes.update({v["name"]: v["shard_slices"] for v in job["variables"] if v["shard_slices"]})
    expect(any(sum(h) == 2 for h in homes.values()), f"one of two slices: {homes}")
    expect(all(sorted(h)[0] == 0 for h in homes.values()), f"each at one shard: {homes}")
    for psd in psds:
        psd.stop()


def test_other_modes(bench):
    for algorithm, locking in (("ssp", "variable"), ("hogwild", "slice"), ("downpour", "none")):
        run = bench.dtworker("run", "--algorithm", algorithm, "--locking", locking, "--model", "softmax", "--data",
                             harness.digits(), "--batch", 10, "--steps", 60, "--json")
        run.expect_exit(0)
        expect(run.json()["test_accuracy"] > 0.5, f"{algorithm}, {locking}: {run.json()['test_accuracy']}")


def test_refusals(bench):
    for args in (("ssgd", "slice"), ("local", "variable"), ("ssp", "none"), ("dynsgd", "none")):
        refused.refused(bench, 64, ["dtworker", "run", "--algorithm", args[0], "--locking", args[1], "--model", "toy"],
                        "--locking")


harness.main(test_variable, test_other_modes, test_refusals)
