"""Under a fake service manager: READY after the bind, pings only while every shard turns, STOPPING."""
import ctypes
import os
import signal
import socket
import time

import harness
from harness import expect

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000
WATCHDOG_USEC = 400000


class Manager:
    def __init__(self, bench):
        self.path = os.path.join(bench.dir, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.seen = []
        bench.closers.append(self.close)

    def close(self):
        self.socket.close()

    def receive(self, timeout):
        self.socket.settimeout(timeout)
        try:
            lines = self.socket.recv(4096).decode().splitlines()
        except (TimeoutError, BlockingIOError):
            return None
        self.seen += lines
        return lines

    def wait_for(self, line, timeout=20.0):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            lines = self.receive(max(0.01, end - time.monotonic()))
            if lines and any(got.startswith(line) for got in lines):
                return True
        return False

    def drain(self):
        while self.receive(0.0) is not None:
            pass


def ptrace(request, tid):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, tid, None, None) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace request {request:#x}")


def shard_threads(pid):
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="ascii") as f:
            if f.read().startswith("shard"):
                found.append(int(tid))
    return found


def test_notify(bench):
    manager = Manager(bench)
    env = {"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": str(WATCHDOG_USEC)}
    psd = bench.psd(shards=2, env=env, wait=False)
    expect(manager.wait_for("READY=1"), "READY=1 comes")
    expect(psd.can_connect(), "at READY the endpoint is bound")
    for _ in range(3):
        expect(manager.wait_for("WATCHDOG=1", 5), "pings come while all is well")
    threads = shard_threads(psd.pid)
    expect(len(threads) == 2, f"two threads are called shard, not {threads}")
    for tid in threads:
        stop_and_look(manager, tid)
    expect(any(line.startswith("STATUS=") for line in manager.seen) or manager.wait_for("STATUS=", 30), "STATUS comes")
    psd.signal(signal.SIGTERM)
    expect(manager.wait_for("STOPPING=1"), "STOPPING=1 comes")
    psd.expect_exit(0)
    os.unlink(manager.path)


def stop_and_look(manager, tid):
    try:
        ptrace(PTRACE_SEIZE, tid)
    except OSError as why:
        raise harness.Skipped(f"ptrace is not allowed here: {why}") from None
    ptrace(PTRACE_INTERRUPT, tid)
    os.waitpid(tid, WALL)
    try:
        time.sleep(2 * WATCHDOG_USEC / 1e6)  # a ping may have been on its way
        manager.drain()
        expect(not manager.wait_for("WATCHDOG=1", 5 * WATCHDOG_USEC / 1e6), "no ping while a shard is stopped")
    finally:
        ptrace(PTRACE_DETACH, tid)
    expect(manager.wait_for("WATCHDOG=1", 10), "pings come again")


harness.main(test_notify)
