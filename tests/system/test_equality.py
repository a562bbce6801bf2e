"""M workers with batch B equal one local worker with batch M*B: ||w - w'|| <= 1e-5 ||w'|| per variable
after 100 steps, which pass several epoch ends with a short last batch; M = 1, 2, 4 and 1 and 3 shards."""
import os

import harness
import weights
from harness import expect

BATCH, STEPS = 22, 100  # 1 500 rows: the last global batch of an epoch is short for each M


def train_local(bench, batch):
    path = os.path.join(bench.dir, f"local{batch}.safetensors")
    if not os.path.exists(path):
        bench.dtworker("train", "--algorithm", "local", "--model", "softmax", "--data", harness.digits(), "--batch", batch,
                       "--lr", "0.2", "--steps", STEPS, "--threads", 1, "--save", path).expect_exit(0)
    return weights.load(path)


def train_together(bench, workers, shards):
    psd = bench.psd(shards=shards)
    path = os.path.join(bench.dir, f"ssgd{workers}-{shards}.safetensors")
    started = [bench.train(psd, rank, workers, "--data", harness.digits(), "--batch", BATCH, "--lr", "0.2", "--steps",
                           STEPS, "--threads", 1, *(["--save", path] if rank == 0 else []), model="softmax")
               for rank in range(workers)]
    for process in started:
        process.expect_exit(0)
    psd.stop()
    return weights.load(path)


def test_equality(bench):
    for workers in (1, 2, 4):
        alone = train_local(bench, workers * BATCH)
        expect(any(abs(w).max() > 0.01 for w in alone.values()), "the weights have moved")
        for shards in (1, 3):
            far = weights.distance(train_together(bench, workers, shards), alone)
            print(f"M = {workers}, {shards} shards: {far:.2e}")
            expect(far <= 1e-5, f"M = {workers}, {shards} shards: ||w - w'|| / ||w'|| is {far:g}")


harness.main(test_equality)
