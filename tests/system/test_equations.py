"""The toy (a + b against 100) follows the closed forms of ALGORITHMS: with rate r in all, c = a + b goes
c_k = 100 (1 - (1 - 2r)^k). SSGD, SSGD with a rate of each worker, and the same by hand."""
import os

import harness
import weights
from harness import expect


def closed_form(rate, steps):
    return 100 * (1 - (1 - 2 * rate)**steps)


def expect_c(path, want, what):
    w = weights.load(path)
    for c in w["a"] + w["b"]:
        print(f"{what}: c = {c:.7g}, expected {want:.7g}")
        expect(abs(c - want) <= 1e-5 * want, f"{what}: c = {c:.7g}, expected {want:.7g}")


def run(bench, algorithm, workers, steps, *args):
    path = os.path.join(bench.dir, f"{algorithm}{workers}-{steps}-{bench.n}")
    bench.dtworker("run", "--ps-tasks", 1, "--workers", workers, "--algorithm", algorithm, "--model", "toy", "--steps", steps,
                   "--save", path, *args).expect_exit(0)
    return path


def test_ssgd(bench):
    for steps, want in ((1, 0.02), (10, 0.1998201)):
        expect(abs(closed_form(1e-4, steps) - want) < 1e-7 * max(1, want), "the table")
        expect_c(run(bench, "ssgd", 2, steps, "--lr", "1e-4"), want, f"ssgd, {steps} steps")


def test_ssgd_diff_lr(bench):
    for steps, want in ((1, 20.02), (10, 89.2894)):
        expect(abs(closed_form(0.1001, steps) - want) < 1e-4, "the table")
        expect_c(run(bench, "ssgd-diff-lr", 2, steps, "--lr-per-rank", ".1,1e-4"), want, f"ssgd-diff-lr, {steps} steps")


def test_ssgd_diff_lr_without_a_list_is_ssgd(bench):
    """Each of three workers has a third of the row's own rate, 0.1."""
    for algorithm in ("ssgd", "ssgd-diff-lr"):
        expect_c(run(bench, algorithm, 3, 5), closed_form(0.1, 5), algorithm)


def test_ssgd_diff_lr_by_hand(bench):
    psd = bench.psd()
    path = os.path.join(bench.dir, "w")
    args = ("--algorithm", "ssgd-diff-lr", "--model", "toy", "--lr-per-rank", "0.01,0.02,0.03", "--steps", 7)
    workers = [bench.dtworker("train", "--ps", psd.endpoint, "--job", "j", "--rank", rank, "--workers", 3, *args,
                              *(("--save", path) if rank == 1 else ())) for rank in range(3)]
    for w in workers:
        w.expect_exit(0)
    expect_c(path, closed_form(0.06, 7), "three workers by hand")
    psd.stop()


def test_a_late_rank_says_which_rate_it_takes(bench):
    psd = bench.psd()
    args = ("--algorithm", "ssgd-diff-lr", "--model", "toy", "--lr-per-rank", "0.001,0.001", "--steps", 60, "--step-delay", 20)
    workers = [bench.dtworker("train", "--ps", psd.endpoint, "--job", "j", "--rank", rank, "--workers", 2, *args)
               for rank in range(2)]
    harness.wait_until(lambda: any(j["step"] >= 2 for j in psd.status()["jobs"]), "the job is at step 2")
    late = bench.dtworker("train", "--ps", psd.endpoint, "--job", "j", "--rank", 2, "--workers", 2, *args)
    for w in (*workers, late):
        w.expect_exit(0)
    expect("no rate of rank 2: it takes 0.05" in late.err(), f"its own / M: {late.err()}")
    psd.stop()


harness.main(test_ssgd, test_ssgd_diff_lr, test_ssgd_diff_lr_without_a_list_is_ssgd, test_ssgd_diff_lr_by_hand,
             test_a_late_rank_says_which_rate_it_takes)
