"""A worker whose declarations or parameters differ from the job's is refused with both values and exit
code 78; the workers that are there do not notice."""
import time

import harness
from harness import expect

DATA = ("--data", harness.DIGITS, "--batch", 10, "--seed", 1, "--threads", 1)
ENDLESS = ("--steps", 1000000, "--step-delay", 5)


class Job:
    """Two ps tasks, ranks 0 and 1 of 3 that train, and others that try to be rank 2."""

    def __init__(self, bench, algorithm="agn", model="mlp:16"):
        harness.digits()
        self.bench, self.algorithm, self.model = bench, algorithm, model
        self.psds = [bench.psd(shards=2) for _ in range(2)]
        self.ps = ",".join(p.endpoint for p in self.psds)
        self.workers = [self.worker(rank, *ENDLESS) for rank in range(2)]
        self.wait_for(30)

    def worker(self, rank, *args, ps=None, workers=3, model=None, algorithm=None):
        return self.bench.dtworker("train", "--ps", ps or self.ps, "--job", "j", "--rank", rank, "--workers", workers,
                                   "--algorithm", algorithm or self.algorithm, "--model", model or self.model, *DATA, *args)

    def step(self):
        return max((j["step"] for j in self.psds[0].status()["jobs"]), default=0)

    def wait_for(self, step):
        harness.wait_until(lambda: self.step() >= step, f"the job is at step {step}")

    def expect_refused(self, *words, **different):
        """A rank 2 with something different ends with 78, and its error has all of `words`."""
        other = self.worker(2, "--steps", 10, *different.pop("args", ()), **different)
        other.expect_exit(78)
        lines = [line for line in other.err().splitlines() if " err" in line or "error" in line]
        expect(len(lines) == 1, f"one line: {lines}")
        for word in (*words, "--"):
            expect(word in lines[0], f"the line has {word!r}: {lines[0]}")
        for word in ("DECLARE", "HELLO", "INIT", "fingerprint"):
            expect(word not in lines[0], f"the line has a word of the protocol, {word}: {lines[0]}")
        expect("another --job" in lines[0] or "in the same order" in lines[0], f"it says what to do: {lines[0]}")

    def finish(self, asynchronous=True):
        """The others go on; one that declares what they do is let in."""
        if asynchronous:
            self.wait_for(self.step() + 60)
            last = self.worker(2, "--steps", 10)
            last.expect_exit(0)
        expect(all(w.is_alive() for w in self.workers), "nobody was disturbed")
        job = self.psds[0].job()
        expect(job["state"] == "open" and job["counters"]["lost"] == 0, f"{job}")
        for w in self.workers:
            w.signal(15)
        for w in self.workers:
            w.expect_exit(-15)
        for psd in self.psds:
            psd.stop()


def test_another_model(bench):
    job = Job(bench)
    job.expect_refused("variable dense1/kernel", "--model or --data (shape): the job has [64, 16]", "this worker says [64, 17]", model="mlp:17")
    job.expect_refused("--model or --partition: the job has 4 variables", "this worker declares 2", model="softmax")
    job.finish()


def test_other_parameters_of_the_optimizer(bench):
    job = Job(bench)
    job.expect_refused("variable dense1/kernel", "--lr: the job has 0.002, this worker says 0.25", args=("--lr", "0.25"))
    job.expect_refused("variable dense1/kernel", "--algorithm, --profile or --server-optimizer (optimizer): the job has adam", "this worker says adagrad",
                       algorithm="downpour")
    job.expect_refused("--seed: the job has 1", "this worker says 2", args=("--seed", 2))
    job.finish()


def test_other_parameters_of_the_job(bench):
    job = Job(bench)
    job.expect_refused("--workers: the job has 3", "this worker says 4", workers=4)
    job.expect_refused("--algorithm (its consistency): the job has async", "this worker says sync", algorithm="ssgd")
    job.expect_refused("--max-staleness: the job has -1", "this worker says 5", args=("--max-staleness", 5))
    job.expect_refused("--lease (in ms): the job has 10000", "this worker says 5000", args=("--lease", "5s"))
    job.expect_refused("--weight-decay: the job has nothing", "this worker says 0.25", args=("--weight-decay", "0.25"))
    job.expect_refused("--lr-schedule (cosine.steps): the job has nothing", "this worker says 9",
                       args=("--lr-schedule", "cosine:steps=9"))
    job.finish()


def test_another_order_of_ps_tasks(bench):
    job = Job(bench)
    job.expect_refused("this psd is ps task", "this worker says task", "in the same order", ps=",".join(p.endpoint for p in reversed(job.psds)))
    job.expect_refused("--ps (its ps tasks): the job has 2", "this worker says 1", ps=job.psds[0].endpoint)
    job.finish()


def test_another_placement(bench):
    job = Job(bench)
    job.expect_refused("variable dense1/bias: --place, --placement or --ps (ps task): the job has 1", "this worker says 0", args=("--place", "dense1/bias=0"))
    job.expect_refused("variable dense2/kernel: --place, --placement or --ps (ps task): the job has 1", "this worker says 0", args=("--placement", "round-robin"))
    job.finish()


def test_a_synchronous_job_goes_on_waiting_for_the_right_one(bench):
    """Who was refused is no member: no round closes without rank 2."""
    psd = bench.psd(shards=2)
    args = (*DATA, "--steps", 40, "--json")
    workers = [bench.train(psd, rank, 3, *args, model="softmax") for rank in range(2)]
    harness.wait_until(lambda: psd.status()["jobs"] and len(psd.job()["waiting"]) >= 2, "ranks 0 and 1 wait")
    for different in (("--seed", 2), ("--lr", "0.7")):
        other = bench.train(psd, 2, 3, *args, *different, model="softmax")
        other.expect_exit(78)
    time.sleep(0.5)
    expect(psd.job()["step"] == 0 and all(w.is_alive() for w in workers), f"still at step 0: {psd.job()}")
    workers.append(bench.train(psd, 2, 3, *args, model="softmax"))
    for w in workers:
        w.expect_exit(0)
        expect(w.json()["steps"] == 40 and w.json()["unseen_rows"] == 0, f"{w.json()}")
    expect(psd.job()["step"] == 40, f"{psd.job()}")
    psd.stop()


harness.main(test_another_model, test_other_parameters_of_the_optimizer, test_other_parameters_of_the_job,
             test_another_order_of_ps_tasks, test_another_placement,
             test_a_synchronous_job_goes_on_waiting_for_the_right_one)
