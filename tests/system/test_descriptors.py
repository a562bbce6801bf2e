"""psd without file descriptors: workers that are connected go on, it is said once, and psd recovers."""
import contextlib
import resource
import socket

import harness
from harness import expect, wait_until


def test_descriptors_used_up(bench):
    endpoint = f"tcp://127.0.0.1:{harness.free_port()}"
    psd = bench.psd(endpoint=endpoint, shards=1)
    worker = bench.train(psd, 0, 1, "--steps", 100000, "--step-delay", 5)
    wait_until(lambda: psd.status()["jobs"] and psd.job()["step"] > 10, "steps are done")
    resource.prlimit(psd.pid, resource.RLIMIT_NOFILE, (40, 40))
    with contextlib.ExitStack() as stack:
        host, port = endpoint[len("tcp://"):].rsplit(":", 1)
        for _ in range(60):
            stack.enter_context(socket.create_connection((host, int(port)), 5))
        wait_until(lambda: "no file descriptor is left" in psd.err(), "psd says so")
        expect(worker.is_alive(), "the worker goes on")
    wait_until(lambda: "to be had again" in psd.err(), "psd says that it is over")
    step = psd.job()["step"]
    wait_until(lambda: psd.job()["step"] > step + 10, "steps go on")
    late = bench.train(psd, 0, 1, "--steps", 3, job="late")
    late.expect_exit(0)
    expect(psd.err().count("no file descriptor is left") == 1, "it is said once")
    worker.signal(15)
    worker.wait()
    psd.stop()


harness.main(test_descriptors_used_up)
