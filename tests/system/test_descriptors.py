"""psd without file descriptors: workers that are connected go on, it is said once, new connections over tcp and
ipc are closed at once without wasting the processor, and psd recovers. A limit that is too low from the start is
test_bad_surroundings.py's."""
import contextlib
import os
import resource
import socket
import time

import harness
from harness import expect, wait_until


def cpu_seconds(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def connect(endpoint):
    kind, address = endpoint.split("://")
    s = socket.socket(socket.AF_UNIX if kind == "ipc" else socket.AF_INET)
    s.settimeout(5)
    s.connect(address if kind == "ipc" else (address.rsplit(":", 1)[0], int(address.rsplit(":", 1)[1])))
    return s


def is_closed(s):
    """psd greets first: read on until the end."""
    try:
        while s.recv(4096):
            pass
    except ConnectionResetError:
        pass
    except socket.timeout:
        return False
    return True


def used_up(bench, ipc):
    psd = bench.psd(ipc=ipc, shards=1)
    worker = bench.train(psd, 0, 1, "--steps", 100000, "--step-delay", 5)
    wait_until(lambda: psd.status()["jobs"] and psd.job()["step"] > 10, "steps are done")
    resource.prlimit(psd.pid, resource.RLIMIT_NOFILE, (40, 40))
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            last = stack.enter_context(connect(psd.endpoint))
        wait_until(lambda: "no file descriptor is left" in psd.err(), "psd says so")
        expect(is_closed(last), "the last one is closed")
        expect(worker.is_alive(), "the worker goes on")
        begin = cpu_seconds(psd)
        time.sleep(2)
        # a twentieth of it is seen; libzmq's own loop would take both seconds
        expect(cpu_seconds(psd) - begin < 1, f"{cpu_seconds(psd) - begin} s of the processor in 2 s")
    wait_until(lambda: "to be had again" in psd.err(), "psd says that it is over")
    step = psd.job()["step"]
    wait_until(lambda: psd.job()["step"] > step + 10, "steps go on")
    late = bench.train(psd, 0, 1, "--steps", 3, job="late")
    late.expect_exit(0)
    expect(psd.err().count("no file descriptor is left") == 1, "it is said once")
    worker.signal(15)
    worker.wait()
    psd.stop()


def test_over_tcp(bench):
    used_up(bench, ipc=False)


def test_over_ipc(bench):
    used_up(bench, ipc=True)


harness.main(test_over_tcp, test_over_ipc)
