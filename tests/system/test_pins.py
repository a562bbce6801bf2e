"""--place and --placement: a model whose layers are pinned to different ps tasks is trained as one that is not
pinned; pins are where psd says; workers must pin alike; wrong options of a row or a pin end with 64 and one line."""
import json
import os

import harness
import weights
from harness import expect

LAYERS = "dense1/kernel=0,dense1/bias=0,dense2/kernel=1,dense2/bias=1"
TRAINING = ("--algorithm", "ssgd", "--model", "mlp:32", "--batch", 25, "--steps", 40, "--lr", "0.2", "--seed", 5)


def run(bench, name, *args):
    path = os.path.join(bench.dir, name)
    bench.dtworker("run", "--workers", 2, *TRAINING, "--data", harness.digits(), "--threads", 1, "--save", path,
                   *args).expect_exit(0)
    return weights.load(path)


def test_pinned_layers_are_trained_as_unpinned_ones(bench):
    plain = run(bench, "plain", "--ps-tasks", 1)
    expect(all(abs(w).max() > 0.001 for w in plain.values()), "the weights have moved")
    for name, args in (("pinned", ("--place", LAYERS)), ("round-robin", ("--placement", "round-robin")), ("greedy", ())):
        far = weights.distance(run(bench, name, "--ps-tasks", 2, *args), plain)
        print(f"{name}: {far:.2e}")
        expect(far <= 1e-5, f"{name}: ||w - w'|| / ||w'|| is {far:g}")


def held(psd):
    """Names of the variables that the job's ps tasks hold, as psd tells them: {name: task}."""
    done = psd.psctl("placement", "--json")
    expect(done.returncode == 0, done.stderr)
    job, = json.loads(done.stdout)["jobs"]
    return {v["name"]: v["ps_task"] for v in job["variables"]}


def train(bench, psds, rank, workers, *args):
    return bench.dtworker("train", "--ps", ",".join(p.endpoint for p in psds), "--job", "j", "--rank", rank, "--workers",
                          workers, *TRAINING, "--data", harness.digits(), *args)


def test_psd_holds_them_where_they_are_pinned(bench):
    kernel1, bias1, kernel2, bias2 = "dense1/kernel", "dense1/bias", "dense2/kernel", "dense2/bias"
    for args, want in ((("--place", LAYERS), {kernel1: 0, bias1: 0, kernel2: 1, bias2: 1}),
                       (("--place", f"{kernel1}=1"), {kernel1: 1, bias1: 0, kernel2: 0, bias2: 0}),
                       (("--placement", "round-robin"), {kernel1: 0, bias1: 1, kernel2: 0, bias2: 1}),
                       ((), {kernel1: 0, bias1: 1, kernel2: 1, bias2: 1})):
        psds = [bench.psd(), bench.psd()]
        train(bench, psds, 0, 1, *args).expect_exit(0)
        for psd in psds:
            expect(held(psd) == want, f"{args}: {held(psd)}")
            psd.stop()


def test_all_workers_pin_alike(bench):
    psds = [bench.psd(), bench.psd()]
    first = train(bench, psds, 0, 2, "--place", LAYERS, "--start-timeout", "12s")
    harness.wait_until(lambda: psds[0].status()["jobs"] and held(psds[0]), "the first has declared")
    other = train(bench, psds, 1, 2, "--start-timeout", "12s")
    other.expect_exit(78)
    expect("dense" in other.err(), f"names a variable: {other.err()}")
    first.expect_exit(0)
    for psd in psds:
        psd.stop()


WRONG = (  # one a row: options, a word of the line
    (("--algorithm", "ssgd", "--lr-per-rank", "1,1"), "ssgd-diff-lr"),
    (("--algorithm", "ssgd-diff-lr", "--lr-per-rank", "1"), "1 rate for 2 workers"),
    (("--algorithm", "sagn", "--server-optimizer", "sgd"), "--lr"),
    (("--algorithm", "hogwild", "--aggregate", 1), "--aggregate"),
    (("--algorithm", "downpour", "--local-optimizer", "nonsense"), "sgd, momentum, nesterov, adagrad, adam"),
    (("--algorithm", "downpour-easy", "--server-optimizer", "add"), "gradients"),
    (("--algorithm", "agn", "--reduce", "sum"), "--window-reduction"),
    (("--algorithm", "local", "--workers", 1, "--place", "a=0"), "--place"),
    (("--algorithm", "ssgd", "--place", "c=0"), "it has a, b"),
    (("--algorithm", "ssgd", "--place", "a=1"), "no ps task 1"),
    (("--algorithm", "ssgd", "--place", "a=0"), "--place chooses between ps tasks, and there is one"),
    (("--algorithm", "ssgd", "--placement", "round-robin"), "--placement chooses between ps tasks, and there is one"),
    (("--algorithm", "ssgd", "--epochs", 2), "--epochs"),
    (("--algorithm", "ssgd", "--batch", 2), "--batch"),
    *((("--algorithm", "local", "--workers", 1, f"--{name}", value), f"--{name} does nothing with --algorithm local")
      for name, value in (("ps-tasks", 1), ("lease", "5s"), ("on-loss", "fail"), ("window", 2), ("retry-for", "1s"),
                          ("start-timeout", "1s"), ("max-bad", 3))),
)


def test_wrong_options(bench):
    for args, word in WRONG:
        worker = bench.dtworker("run", "--model", "toy", "--workers", 2, *args)
        worker.expect_exit(64)
        lines = worker.err().splitlines()
        expect(len(lines) == 1 and word in lines[0], f"{args}: one line with '{word}': {lines}")
    worker = bench.dtworker("train", "--ps", "tcp://127.0.0.1:9", "--job", "j", "--model", "toy", "--place", "b=1")
    worker.expect_exit(64)
    expect("no ps task 1" in worker.err(), worker.err())


harness.main(test_pinned_layers_are_trained_as_unpinned_ones, test_psd_holds_them_where_they_are_pinned,
             test_all_workers_pin_alike, test_wrong_options)
