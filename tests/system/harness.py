"""harness.py - what the system tests share: real programs, started, watched and stopped by their pid.

A test is a script that runs its functions under `harness.main(...)` and exits 0, 1 or 77 (skipped, with
a line that says why). Each function gets a `Bench`: a temporary directory and the processes started
in it. When the function returns, everything must have ended and nothing may be left: no process
(found by a mark in its environment), no socket or lock file, no sanitizer report.

Time bounds are far from what is seen on an idle machine: a test asserts progress, not speed. What it waits for is asked
again and again (`wait_until`), never assumed after a sleep; what must not be over yet has no end of its own."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("PSD_BIN_DIR", os.path.join(ROOT, "build", "release", "bin"))
DIGITS = os.path.join(ROOT, "tests", "data")
FASHION = "/usr/share/datasets/fashion-mnist"
LONG = 200.0  # seconds; what takes ten at most on an idle machine
MARK = "PSD_TEST_MARK"


class Failed(Exception):
    """An expectation did not hold."""


class Skipped(Exception):
    """The test cannot run here."""


def expect(condition, what):
    if not condition:
        raise Failed(what)


def program(name):
    path = os.path.join(BIN, name)
    if not os.access(path, os.X_OK):
        # ctest names the folder of a build: there it must be.
        raise (Failed if "PSD_BIN_DIR" in os.environ else Skipped)(f"no program {path}")
    return path


def digits():
    if not any(n.startswith("train-images-idx3-ubyte") for n in os.listdir(DIGITS)):
        raise Skipped(f"no data in {DIGITS}")
    return DIGITS


def wait_until(condition, what, timeout=LONG):
    """Poll until `condition()` is true; its value."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise Failed(f"not within {timeout:g} s: {what}")


def has_content(path, least=1):
    """The file is there with so many bytes."""
    return os.path.exists(path) and os.path.getsize(path) >= least


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Process:
    """A program with its output in files."""

    def __init__(self, bench, name, argv, env=None, group=False):
        self.name, self.argv = name, argv
        self.out_path = os.path.join(bench.dir, f"{name}.out")
        self.err_path = os.path.join(bench.dir, f"{name}.err")
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=bench.dir,
                                          env={**bench.env, **(env or {})}, start_new_session=group)
        self.pid = self.popen.pid

    def out(self):
        with open(self.out_path, errors="replace") as f:
            return f.read()

    def err(self):
        with open(self.err_path, errors="replace") as f:
            return f.read()

    def json(self):
        text = self.out()
        try:
            return json.loads(text)
        except ValueError:
            raise Failed(f"{self.name}: its stdout is not one JSON object: {text[:300]!r}") from None

    def is_alive(self):
        return self.popen.poll() is None

    def signal(self, number):
        if self.is_alive():
            os.kill(self.pid, number)

    def wait(self, timeout=LONG):
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} has not ended within {timeout:g} s") from None

    def expect_exit(self, code, timeout=LONG):
        """A negative code is a signal, as in subprocess."""
        got = self.wait(timeout)
        expect(got == code, f"{self.name} ended with {got}, expected {code}")

    def kill(self):
        if self.is_alive():
            self.popen.send_signal(signal.SIGCONT)
            self.popen.kill()
        self.popen.wait()

    def report(self):
        text = f"--- {self.name}: {' '.join(self.argv)}\n    status {self.popen.poll()}\n"
        for stream, content in (("stdout", self.out()), ("stderr", self.err())):
            if content:
                lines = content.splitlines()
                text += f"    {stream}, last of {len(lines)} lines:\n" + "\n".join(lines[-30:]) + "\n"
        return text


def can_connect(endpoint):
    family, address = socket.AF_UNIX, endpoint[len("ipc://"):]
    if endpoint.startswith("tcp://"):
        host, port = endpoint[len("tcp://"):].rsplit(":", 1)
        family, address = socket.AF_INET, (host, int(port))
    with socket.socket(family) as s:
        try:
            return s.connect_ex(address) == 0
        except OSError:  # no such path
            return False


class Psd(Process):
    """A psd that is ready to take connections."""

    def __init__(self, bench, name, endpoint, options, flags, env, wait):
        self.endpoint = endpoint
        self.admin = f"ipc://{bench.dir}/{name}.admin"
        argv = [program("psd"), "--listen", endpoint, "--admin", self.admin, *flags]
        for key, value in {"together_bytes": 0, **options}.items():  # small models on all shards
            argv += ["-o", f"{key}={value}"]
        super().__init__(bench, name, argv, env)
        if wait:
            self.wait_ready()

    def can_connect(self):
        """To every endpoint: the one for psctl is bound after the others, its lock file is made before."""
        expect(self.is_alive(), f"{self.name} ended with {self.popen.poll()} at its start")
        return all(can_connect(e) for e in (self.endpoint, self.admin))

    def wait_ready(self):
        wait_until(self.can_connect, f"{self.name} listens")

    def status(self):
        """What psctl status --json says, asked in a millisecond: a poll must see what lasts for a short time only."""
        import protocol
        reply = protocol.ask(self.admin, protocol.ADMIN_STATUS)
        expect(reply is not None and reply.status == protocol.OK, f"{self.name}: status: {reply}")
        return protocol.shown(reply.body())

    def psctl(self, *args):
        """The completed psctl, with its text."""
        return subprocess.run([program("psctl"), "--admin", self.admin, *map(str, args)], capture_output=True, text=True,
                              timeout=LONG, check=False)

    def job(self, name="j"):
        for job in self.status()["jobs"]:
            if job["name"] == name:
                return job
        raise Failed(f"psd has no job {name}")

    def stop(self):
        self.signal(signal.SIGTERM)
        self.expect_exit(0)


class Bench:
    """A directory and the processes of one test."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="psd-")
        self.mark = uuid.uuid4().hex
        self.env = {**os.environ, MARK: self.mark, "TMPDIR": self.dir, "XDG_RUNTIME_DIR": self.dir,
                    "OPENBLAS_NUM_THREADS": "1", "LC_ALL": "C"}
        self.env.pop("NOTIFY_SOCKET", None)
        self.processes, self.n = [], 0
        self.closers = []

    def start(self, name, argv, env=None, group=False):
        self.n += 1
        process = Process(self, f"{self.n}-{name}", argv, env, group)
        self.processes.append(process)
        return process

    def psd(self, ipc=False, endpoint=None, flags=(), env=None, wait=True, **options):
        """psd on an unused loopback port, or on ipc. options: keys of psd.conf."""
        self.n += 1
        if endpoint is None:
            endpoint = f"ipc://{self.dir}/psd{self.n}" if ipc else f"tcp://127.0.0.1:{free_port()}"
        process = Psd(self, f"{self.n}-psd", endpoint, options, flags, env, False)
        self.processes.append(process)
        if wait:
            process.wait_ready()
        return process

    def dtworker(self, *args, env=None, group=False):
        return self.start(f"dtworker-{args[0]}", [program("dtworker"), *map(str, args)], env, group)

    def train(self, ps, rank, workers, *args, job="j", model="toy", env=None):
        """dtworker train. `ps`: a Psd, or endpoints."""
        return self.dtworker("train", "--ps", ps if isinstance(ps, str) else ps.endpoint, "--job", job, "--rank",
                             rank, "--workers", workers, "--algorithm", "ssgd", "--model", model, *args, env=env)

    def proxy(self, psd):
        proxy = Proxy(psd.endpoint)
        self.closers.append(proxy.close)
        return proxy

    def raw(self, psd, endpoint=None):
        import protocol
        raw = protocol.Raw(endpoint or psd.endpoint)
        self.closers.append(raw.close)
        return raw

    def marked(self):
        """Pids of processes of this test that are alive (children of children, too)."""
        found, mark = [], f"{MARK}={self.mark}".encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as f:
                if mark in f.read().split(b"\0"):
                    found.append(int(pid))
        return found

    def expect_nothing_left(self):
        running = [p.name for p in self.processes if p.is_alive()]
        expect(not running, f"still running: {', '.join(running)}")
        wait_until(lambda: not self.marked(), "children of children have ended")

    def expect_no_files(self, allow=()):
        left = []
        for folder, _, names in os.walk(self.dir):
            for name in names:
                path = os.path.join(folder, name)
                mode = os.lstat(path).st_mode
                if stat.S_ISSOCK(mode) or name.endswith((".lock", ".tmp")):
                    left.append(os.path.relpath(path, self.dir))
        left = [name for name in left if not any(re.search(a, name) for a in allow)]
        expect(not left, f"left behind: {', '.join(left)}")

    def expect_sane(self):
        for p in self.processes:
            found = re.search(r"ERROR: \w+Sanitizer.*|runtime error:.*|Assertion .*", p.err())
            expect(not found, f"{p.name}: {found and found.group(0)}")

    def close(self, keep):
        for closer in self.closers:
            closer()
        for p in self.processes:
            p.kill()
        for pid in self.marked():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if keep:
            print("".join(p.report() for p in self.processes))
        shutil.rmtree(self.dir, ignore_errors=True)


class Proxy:
    """A TCP proxy before one shard of a psd (use shards=1: other shards are connected directly).

    hold() lets nothing through, release() ends that; delay(seconds) holds each piece so long;
    cut() closes all connections, cut_after(bytes) does when so many more bytes went to psd;
    refuse(True) closes new connections at once; drop(True) throws away what psd answers;
    on_up is called with each piece before it goes to psd."""

    def __init__(self, target):
        host, port = target[len("tcp://"):].rsplit(":", 1)
        self.target = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        self.lock, self.pairs = threading.Lock(), []
        self.open = threading.Event()
        self.open.set()
        self.pause, self.left, self.refusing, self.n_cut = 0.0, None, False, 0
        self.on_up, self.dropping = None, False
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self):
        self.open.clear()

    def release(self):
        self.open.set()

    def delay(self, seconds):
        self.pause = seconds

    def refuse(self, yes):
        self.refusing = yes

    def drop(self, yes):
        self.dropping = yes

    def cut_after(self, n_bytes):
        with self.lock:
            self.left = n_bytes

    def cut(self):
        with self.lock:
            pairs, self.pairs = self.pairs, []
        self.n_cut += len(pairs)
        for pair in pairs:
            for s in pair:
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)
                s.close()

    def close(self):
        self.refusing = True
        self.open.set()
        self.listener.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                if self.refusing:
                    raise OSError
                server = socket.create_connection(self.target, 5)
            except OSError:
                client.close()
                continue
            for s in (client, server):
                s.settimeout(None)
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.pairs.append((client, server))
            for a, b, up in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._copy, args=(a, b, up), daemon=True).start()

    def _allowed(self, n_bytes, up):
        """How many of the bytes may pass before the cut."""
        with self.lock:
            if self.left is None or not up:
                return n_bytes
            n = min(n_bytes, self.left)
            self.left -= n
            return n

    def _copy(self, a, b, up):
        try:
            while True:
                data = a.recv(65536)
                if not data:
                    break
                self.open.wait()
                if self.pause:
                    time.sleep(self.pause)
                if up and self.on_up:
                    self.on_up(data)
                if not up and self.dropping:
                    continue
                n = self._allowed(len(data), up)
                b.sendall(data[:n])
                if n < len(data):
                    with self.lock:
                        self.left = None
                    self.cut()
                    return
        except OSError:
            pass
        for s in (a, b):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)


def main(*tests):
    """Run the functions, each with a Bench of its own; exit 0, 1 or 77. TERM ends it in order."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    skipped = 0
    for test in tests:
        bench, good, begin = Bench(), False, time.monotonic()
        try:
            test(bench)
            bench.expect_nothing_left()
            bench.expect_no_files(getattr(test, "allow_files", ()))
            bench.expect_sane()
            good = True
        except Skipped as why:
            print(f"{test.__name__}: skipped: {why}")
            skipped += 1
            good = True
            continue
        except Failed as what:
            print(f"{test.__name__}: FAILED: {what}")
        except Exception:  # a bug of the test counts as a failure, with its trace
            traceback.print_exc(file=sys.stdout)
        finally:
            bench.close(not good)
        if not good:
            sys.exit(1)
        print(f"{test.__name__}: ok, {time.monotonic() - begin:.1f} s")
    sys.exit(77 if skipped == len(tests) else 0)
