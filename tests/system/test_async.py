"""dtworker run of the algorithms with windows: each learns, the first at the target stops all."""
import harness
from harness import expect

ALGORITHMS = ("downpour", "downpour-easy", "agn", "sagn", "dynsgd", "easgd", "aeasgd", "eamsgd")
VARIANTS = (("downpour", "dist-keras"), ("downpour", "paper"), ("agn", "dist-keras"), ("aeasgd", "dist-keras"),
            ("eamsgd", "dist-keras"))


def test_each_learns(bench):
    """The digits, 3 workers, the algorithm's own rates."""
    for algorithm, profile in (*((a, "own") for a in ALGORITHMS), *VARIANTS):
        run = bench.dtworker("run", "--ps-tasks", 1, "--workers", 3, "--algorithm", algorithm, "--profile", profile,
                             "--model", "softmax", "--data", harness.digits(), "--batch", 10, "--epochs", 10, "--json")
        run.expect_exit(0)
        result = run.json()
        print(f"{algorithm} {profile}: test accuracy {result['test_accuracy']:.3f}")
        expect(result["test_accuracy"] >= 0.8, f"{algorithm}: test accuracy {result['test_accuracy']}")
        expect(result["unseen_rows"] == 0, f"{algorithm}: unseen rows {result['unseen_rows']}")


def test_the_first_at_the_target_stops_all(bench):
    run = bench.dtworker("run", "--ps-tasks", 1, "--workers", 3, "--algorithm", "agn", "--model", "softmax", "--data",
                         harness.digits(), "--batch", 10, "--epochs", 200, "--target-accuracy", "0.8", "--json")
    run.expect_exit(0)
    expect(run.json()["test_accuracy"] >= 0.7, f"{run.json()}")
    expect(run.json()["samples"] < 200 * 1500, "stopped long before the end")


harness.main(test_each_learns, test_the_first_at_the_target_stops_all)
