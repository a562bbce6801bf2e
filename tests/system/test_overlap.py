"""--overlap changes when gradients are sent and values are awaited, not the numbers: one worker's weights are the same bit
for bit in a synchronous and in asynchronous rows (with and without a window), over epochs, with kernels of several slices
and when it is stopped; two workers' equal by norm, also when one's lease ends."""
import os
import signal

import harness
import weights
from harness import expect


def train(bench, name, workers, *options):
    path = os.path.join(bench.dir, f"{name}.safetensors")
    bench.dtworker("run", "--ps-tasks", 2, "--workers", workers, "--model", "mlp:24,16", "--data", harness.digits(),
                   "--batch", 32, "--steps", 60, "--threads", 1, "--save", path, *options).expect_exit(0)
    return weights.load(path)


def test_overlap(bench):
    for algorithm in ("ssgd", "ssgd-diff-lr", "hogwild", "agn", "downpour"):
        plain = train(bench, f"{algorithm}", 1, "--algorithm", algorithm)
        overlapped = train(bench, f"{algorithm}-overlap", 1, "--algorithm", algorithm, "--overlap")
        far = weights.distance(overlapped, plain)
        print(f"{algorithm}: {far:.2e}")
        expect(far == 0, f"{algorithm}: --overlap changes the weights by {far:g}")
    plain = train(bench, "two", 2, "--algorithm", "ssgd")
    far = weights.distance(train(bench, "two-overlap", 2, "--algorithm", "ssgd", "--overlap"), plain)
    print(f"ssgd, two workers: {far:.2e}")
    expect(far <= 1e-5, f"two workers: --overlap changes the weights by {far:g}")
    for wrong in (["--algorithm", "local"], ["--replicas", "2"]):
        bench.dtworker("run", "--model", "softmax", "--data", harness.digits(), "--overlap", *wrong).expect_exit(64)


def test_layers_of_several_slices(bench):
    options = ("--algorithm", "ssgd", "--model", "mlp:600,500,600", "--steps", 12)
    plain = train(bench, "large", 1, *options)
    far = weights.distance(train(bench, "large-overlap", 1, *options, "--overlap"), plain)
    expect(far == 0, f"--overlap changes the weights by {far:g}")


def by_hand(bench, psd, rank, workers, saved, *options):
    return bench.train(psd, rank, workers, "--data", harness.digits(), "--batch", 32, "--threads", 1, "--save", saved, "--json",
                       *options, model="mlp:24,16,16")


def test_a_stopped_worker_saves_a_whole_step(bench):
    psd = bench.psd(shards=2)
    stopped, whole = (os.path.join(bench.dir, name) for name in ("stopped", "whole"))
    worker = by_hand(bench, psd, 0, 1, stopped, "--steps", 1000000, "--overlap")
    harness.wait_until(lambda: any(j["step"] >= 100 for j in psd.status()["jobs"]), "it trains")
    worker.signal(signal.SIGTERM)
    worker.expect_exit(-signal.SIGTERM)
    psd.stop()
    psd = bench.psd(shards=2)
    by_hand(bench, psd, 0, 1, whole, "--steps", weights.step(stopped)).expect_exit(0)
    far = weights.distance(weights.load(stopped), weights.load(whole))
    expect(far == 0, f"what was saved at step {weights.step(stopped)} is {far:g} from that step's weights")
    psd.stop()


def test_a_worker_whose_lease_ended_goes_on(bench):
    psd = bench.psd(shards=2)
    saved = [os.path.join(bench.dir, f"rank-{rank}") for rank in range(2)]
    workers = [by_hand(bench, psd, rank, 2, saved[rank], "--steps", 400, "--step-delay", 5, "--lease", "1", "--overlap")
               for rank in range(2)]
    harness.wait_until(lambda: any(j["step"] >= 30 for j in psd.status()["jobs"]), "it trains")
    workers[1].signal(signal.SIGSTOP)
    harness.wait_until(lambda: psd.job()["counters"]["lost"] == 1, "rank 1 is lost")
    workers[1].signal(signal.SIGCONT)
    for w in workers:
        w.expect_exit(0)
        expect(w.json()["steps"] == 400, f"{w.json()}")
    expect(workers[1].json()["lives_lost"] == 1, f"{workers[1].json()}")
    far = weights.distance(*map(weights.load, saved))
    expect(far == 0, f"the two end {far:g} apart")
    psd.stop()


harness.main(test_overlap, test_layers_of_several_slices, test_a_stopped_worker_saves_a_whole_step,
             test_a_worker_whose_lease_ended_goes_on)
