"""asynchronous.py - what the tests of asynchronous jobs share: digits, softmax, agn (windows of 3 batches)."""
import signal

import harness
from harness import expect


def start(bench, ps, rank, workers, *args, algorithm="agn", batch=10, job="j", data=None):
    """One worker; `ps`: a list of Psd, or one."""
    psds = ps if isinstance(ps, list) else [ps]
    return bench.dtworker("train", "--ps", ",".join(p.endpoint for p in psds), "--job", job, "--rank", rank, "--workers",
                          workers, "--algorithm", algorithm, "--model", "softmax", "--data", data or harness.digits(), "--batch", batch,
                          "--threads", 1, "--json", *args)


def step_of(psd, job="j"):
    return max((j["step"] for j in psd.status()["jobs"] if j["name"] == job), default=0)


def wait_for_step(psd, step, job="j"):
    harness.wait_until(lambda: step_of(psd, job) >= step, f"job {job} is at step {step}")


def expect_done(worker, steps):
    worker.expect_exit(0)
    expect(worker.json()["steps"] == steps, f"{worker.name}: {worker.json()}")


def kill(process):
    process.signal(signal.SIGKILL)
    process.expect_exit(-signal.SIGKILL)
