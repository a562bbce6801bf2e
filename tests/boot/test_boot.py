"""The packages in a Debian that is booted: install, start, train, reload, stop, kill, wedge, two instances, purge.

test_boot.py PACKAGES CACHE: the build of test_packages.py, and a folder for the root's archive."""
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import machine
import packages
from packages import expect

LIBRARIES = ("libzmq5", "libinih1", "libjansson4", "libsystemd0", "libopenblas0", "libxxhash0", "zlib1g")
LISTENING = "0A"  # in /proc/net/tcp
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000
MOST = 1.5

HOLD_PORT = """
import socket, sys
s = socket.create_server(("127.0.0.1", 2222))
print("held", flush=True)
sys.stdin.read()
"""


def say(what):
    print(f"    {what}", flush=True)


def listening(m):
    """[(address, port)] of all sockets that accept tcp connections."""
    found = []
    for line in m.network("cat", "/proc/net/tcp", "/proc/net/tcp6").stdout.splitlines():
        local = re.match(rf"\s*\d+: ([0-9A-F]+):([0-9A-F]+) [0-9A-F]+:[0-9A-F]+ {LISTENING} ", line)
        if local:
            address = local.group(1)
            if len(address) == 8:
                address = ".".join(str(int(address[i:i + 2], 16)) for i in (6, 4, 2, 0))
            found.append((address, int(local.group(2), 16)))
    return found


def status(m, port=2222):
    """What psctl says, asked once; None: no answer."""
    done = m.run("psctl", "--admin", f"ipc:///run/psd/{port}.sock", "--json", "status", check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def main_pid(m, unit="psd"):
    return int(m.show(unit, "MainPID"))


def restarts(m, unit="psd"):
    return int(m.show(unit, "NRestarts"))


def sockets(m):
    """What is in /run/psd but folders."""
    return [line for line in m.run("find", "/run/psd", "-not", "-type", "d").stdout.splitlines() if line]


def said(m, unit, pattern):
    return any(re.search(pattern, text) for _, text in m.journal(unit))


def test_install(m, debs):
    """apt installs the packages, and enables and starts nothing."""
    for name in ("psd", "dtworker"):
        shutil.copy(debs[name], m.path("/opt"))
    files = [f"/opt/{os.path.basename(debs[name])}" for name in ("psd", "dtworker")]
    m.run("apt-get", "install", "--yes", "--no-install-recommends", *files, timeout=300)
    for unit in ("psd.service", "psd@a.service", "dtworker@r0.service"):
        is_enabled = m.systemctl("is-enabled", unit, check=False).stdout.strip()
        is_active = m.systemctl("is-active", unit, check=False).stdout.strip()
        expect(is_enabled == "disabled" and is_active == "inactive", f"{unit} is {is_enabled} and {is_active}")
    groups = m.run("id", "-nG", "dtworker").stdout.split()
    expect("psd" in groups, f"dtworker is in the groups {groups}")
    listens = re.findall(r"^listen = (.*)$", m.run("cat", "/etc/psd/psd.conf").stdout, re.M)
    expect(listens == ["tcp://127.0.0.1:2222", "ipc:///run/psd/psd.ipc"], f"psd.conf listens on {listens}")
    say(f"nothing enabled, nothing active; psd.conf: {', '.join(listens)}")


def test_start_fails(m, _):
    """A psd that cannot bind is never active."""
    argv = ["nsenter", "--target", str(m.leader), "--net", "--", sys.executable, "-c", HOLD_PORT]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        expect(holder.stdout.readline() == "held\n", "the port is held")
        done = m.systemctl("start", "psd", check=False)
        is_active = m.systemctl("is-active", "psd", check=False).stdout.strip()
        m.systemctl("stop", "psd", check=False)
        holder.stdin.close()
        holder.wait(30)
    expect(done.returncode != 0 and is_active != "active", f"start ended with {done.returncode}, psd is {is_active}")
    expect(said(m, "psd.service", "2222.* in use"), "psd says that the port is in use")
    m.systemctl("reset-failed", "psd", check=False)
    say(f"port in use: start ended with {done.returncode}, psd was {is_active}")


def test_start(m, _):
    """When `systemctl start` returns psd answers; loopback and ipc only."""
    begin = time.monotonic()
    m.systemctl("start", "psd")
    took = time.monotonic() - begin
    first = status(m)
    expect(first is not None, "psd answers at once")
    found = listening(m)
    expect(("127.0.0.1", 2222) in found, f"it listens on port 2222 of {found}")
    expect(all(address == "127.0.0.1" for address, _ in found), f"it listens beyond loopback: {found}")
    expect("/run/psd/psd.ipc" in sockets(m), "it listens on ipc")
    expect(m.show("psd", "Type") == "notify" and m.show("psd", "WatchdogUSec") == "30s", "notify and watchdog")
    say(f"active after {took:.2f} s, answers at once; tcp {found}; {' '.join(sockets(m))}")


def wait_done(m, unit):
    machine.wait_until(lambda: m.show(unit, "ActiveState") not in ("active", "activating"), f"{unit} ends", 120)
    result, code = m.show(unit, "Result"), m.show(unit, "ExecMainStatus")
    text = " / ".join(line for _, line in m.journal(unit)[-5:])
    expect(result == "success" and code == "0", f"{unit}: {result}, {code}: {text}")


def worker(m, name, ps, job, rank, workers, *more):
    m.write(f"/etc/psd/dtworker-{name}.conf",
            f"DTWORKER_ARGS=train --ps {ps} --job {job} --rank {rank} --workers {workers} --algorithm ssgd"
            f" --model softmax --data /opt/data --batch 50 --lr 0.1 {' '.join(more)}\n")
    m.systemctl("start", f"dtworker@{name}")


def told(m, name, what):
    """The last line of a worker that begins with `what`."""
    lines = [text for _, text in m.journal(f"dtworker@{name}.service") if text.startswith(what)]
    return " ".join(lines[-1].split()) if lines else f"no {what}"


def test_train(m, _):
    """One job over tcp, one over ipc, and one with a worker on each."""
    data = os.path.join(packages.ROOT, "tests", "data")
    shutil.copytree(data, m.path("/opt/data"))
    tcp, ipc = "tcp://127.0.0.1:2222", "ipc:///run/psd/psd.ipc"
    for job, places in (("tcp", [tcp]), ("ipc", [ipc]), ("both", [tcp, ipc])):
        names = [f"{job}{rank}" for rank in range(len(places))]
        for rank, ps in enumerate(places):
            save = ("--save", "w.safetensors") if rank == 0 else ()
            worker(m, names[rank], ps, job, rank, len(places), "--epochs", "3", *save)
        for name in names:
            wait_done(m, f"dtworker@{name}")
        expect(os.path.getsize(m.path(f"/var/lib/dtworker/{names[0]}/w.safetensors")) > 1000, "it saved its values")
        done = next(j for j in status(m)["jobs"] if j["name"] == job)
        expect(done["state"] == "complete", f"job {job}: {done}")
        say(f"job {job}: {len(places)} worker(s) over {', '.join(places)}: complete, step {done['step']}; "
            f"{told(m, names[0], 'test accuracy')}, {told(m, names[0], 'samples/s')}")
    score = m.run("dtworker", "eval", "--model-file", "/var/lib/dtworker/both0/w.safetensors", "--data", "/opt/data")
    say(f"eval of what was saved: {' '.join(score.stdout.split())}")


def change(m, text):
    with open(m.path("/etc/psd/psd.conf"), "a", encoding="utf-8") as f:
        f.write(text)


def test_reload(m, _):
    """Log level and limits change in the running process; a bad file changes nothing."""
    pid = main_pid(m)
    change(m, "log_level = debug\nmemory_quota = 1KiB\nshards = 3\n")
    m.systemctl("reload", "psd")
    machine.wait_until(lambda: said(m, "psd.service", "read again"), "psd says that it has read its file")
    expect(main_pid(m) == pid and m.show("psd", "ActiveState") == "active", "the process is the same")
    worker(m, "quota", "tcp://127.0.0.1:2222", "quota", 0, 1, "--epochs", "1")
    machine.wait_until(lambda: said(m, "dtworker@quota.service", "memory_quota allows a job 1024"),
                       "the new quota refuses a job")
    m.systemctl("stop", "dtworker@quota")
    change(m, "nonsense = 1\n")
    m.systemctl("reload", "psd")
    machine.wait_until(lambda: said(m, "psd.service", "nonsense"), "psd says what is wrong")
    expect(main_pid(m) == pid and status(m), "it goes on")
    with open(m.path("/etc/psd/psd.conf"), encoding="utf-8") as f:
        lines = f.read().splitlines()[:-4]
    m.write("/etc/psd/psd.conf", "\n".join(lines) + "\n")
    m.systemctl("reload", "psd")
    for _, text in [line for line in m.journal("psd.service") if "read again" in line[1] or "reload:" in line[1]][:6]:
        say(text)


def test_stop(m, _):
    """With a worker in the middle of a training."""
    worker(m, "long", "tcp://127.0.0.1:2222", "long", 0, 1, "--steps", "1000000", "--step-delay", "10",
           "--retry-for", "1")
    machine.wait_until(lambda: any(j["name"] == "long" and j["step"] > 2 for j in status(m)["jobs"]), "it trains")
    begin = time.monotonic()
    m.systemctl("stop", "psd")
    took = time.monotonic() - begin
    result, code = m.show("psd", "Result"), m.show("psd", "ExecMainStatus")
    expect(result == "success" and code == "0", f"psd ended with {result}, {code}")
    expect(took < 8, f"stopping took {took:.1f} s")
    expect(not sockets(m), f"left behind: {sockets(m)}")
    machine.wait_until(lambda: m.show("dtworker@long", "ExecMainStatus") == "69", "the worker gives up with 69")
    m.systemctl("stop", "dtworker@long", check=False)
    say(f"stopped in {took:.2f} s, exit code {code}, /run/psd is empty; the worker ended with 69")


def await_restart(m, before, pid, timeout):
    machine.wait_until(lambda: restarts(m) > before and m.show("psd", "ActiveState") == "active", "it is restarted",
                       timeout)
    expect(main_pid(m) != pid and status(m) is not None, "the new one answers")


def test_kill(m, _):
    m.systemctl("start", "psd")
    pid, before, begin = main_pid(m), restarts(m), time.monotonic()
    os.kill(m.host_pid(pid), signal.SIGKILL)
    await_restart(m, before, pid, 30)
    say(f"killed with -9: a new one was active after {time.monotonic() - begin:.1f} s")


def short_watchdog(m):
    """The shipped one is 30 s; here it is 3."""
    m.write("/etc/systemd/system/psd.service.d/watchdog.conf", "[Service]\nWatchdogSec=3\n")
    m.systemctl("daemon-reload")
    m.systemctl("restart", "psd")
    expect(m.show("psd", "WatchdogUSec") == "3s", "the watchdog is short")


def expect_watchdog(m, before, pid, begin, what):
    await_restart(m, before, pid, 60)
    took = time.monotonic() - begin
    found = m.run("journalctl", "--no-pager", "--output=cat", "--unit=psd", "_PID=1").stdout
    line = [line for line in found.splitlines() if "atchdog" in line]
    expect(line, "systemd says that it was the watchdog")
    say(f"{what}: a new one was active after {took:.1f} s; systemd: {line[-1]}")


def test_wedged_process(m, _):
    short_watchdog(m)
    pid, before, begin = main_pid(m), restarts(m), time.monotonic()
    os.kill(m.host_pid(pid), signal.SIGSTOP)
    expect_watchdog(m, before, pid, begin, "process stopped (SIGSTOP)")


def shard_thread(pid):
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="ascii") as f:
            if f.read().startswith("shard"):
                return int(tid)
    raise packages.Failed("psd has no thread called shard")


def has_ended(tid):
    found, state = os.waitpid(tid, os.WNOHANG | WALL)
    return found == tid and not os.WIFSTOPPED(state)


def test_wedged_thread(m, _):
    """Only a shard's thread stands; the main thread goes on and sees it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    pid, before, begin = main_pid(m), restarts(m), time.monotonic()
    tid = shard_thread(m.host_pid(pid))
    if libc.ptrace(PTRACE_SEIZE, tid, None, None) != 0:
        say(f"a thread alone: not shown, ptrace is not allowed here: {os.strerror(ctypes.get_errno())}")
        return
    libc.ptrace(PTRACE_INTERRUPT, tid, None, None)
    try:
        machine.wait_until(lambda: said(m, "psd.service", "shard [0-9]+ is stuck"), "psd says which shard stands")
        # a thread that is traced is there until its tracer has seen its end
        machine.wait_until(lambda: has_ended(tid), "the watchdog ends it", 60)
    except packages.Failed:
        libc.ptrace(PTRACE_DETACH, tid, None, None)
        raise
    expect_watchdog(m, before, pid, begin, "one shard's thread stopped")


def test_journal(m, _):
    """Lines carry their own priority, without the mark that brought it."""
    lines = m.journal("psd.service")
    wanted = ((6, r"^psd [0-9.]+ listens on "), (5, r"^configuration read again"), (3, r"in use|nonsense"), (3, r"is stuck"))
    for priority, pattern in wanted:
        found = {p for p, text in lines if re.search(pattern, text)}
        expect(found == {priority}, f"lines of {pattern} have the priorities {found}, not {priority}")
    expect(not [text for _, text in lines if text.startswith("<")], "no line has its mark")
    for priority in sorted({p for p, _ in lines}):
        say(f"priority {priority}: {next(text for p, text in lines if p == priority)}")


def test_security(m, _):
    m.systemctl("start", "psd")
    for unit in ("psd.service", "psd@a.service", "dtworker@r0.service"):
        line = re.search(r"Overall exposure level.*: ([0-9.]+)",
                         m.run("systemd-analyze", "security", "--no-pager", unit).stdout)
        expect(line, f"{unit} has a score")
        expect(float(line.group(1)) <= MOST, f"{unit}: {line.group(0)}")
        say(re.sub(r"[^ -~]", "", line.group(0)))


def test_two_instances(m, _):
    """Beside psd: own configuration, own runtime and state directory, own admin socket."""
    for name, port in (("a", 3001), ("b", 3002)):
        m.write(f"/etc/psd/{name}.conf",
                f"[psd]\nlisten = tcp://127.0.0.1:{port}\nlisten = ipc:///run/psd/{name}/worker.ipc\n")
    m.systemctl("start", "psd@a", "psd@b")
    for name, port in (("a", 3001), ("b", 3002)):
        expect(status(m, port) is not None, f"psd@{name} answers on its own admin socket")
        expect(m.run("stat", "--format=%U:%G %a", f"/var/lib/psd/{name}").stdout == "psd:psd 750\n", "state directory")
        worker(m, f"of-{name}", f"ipc:///run/psd/{name}/worker.ipc", f"job-{name}", 0, 1, "--epochs", "1")
        wait_done(m, f"dtworker@of-{name}")
        expect([j["name"] for j in status(m, port)["jobs"]] == [f"job-{name}"], f"psd@{name} has its own job alone")
    m.systemctl("stop", "psd@a", "psd")
    expect(status(m, 3002) is not None, "psd@b goes on when the others stop")
    m.systemctl("start", "psd")
    m.systemctl("stop", "psd@b", "psd")
    expect(not sockets(m), f"left behind: {sockets(m)}")
    say("psd, psd@a and psd@b ran side by side; each had its own job; stopping one left the others alone")


def test_purge(m, _):
    """apt takes away what it brought, and stops what runs."""
    m.systemctl("start", "psd")
    pid = main_pid(m)
    m.run("rm", "-r", "/etc/psd/a.conf", "/etc/psd/b.conf", "/etc/systemd/system/psd.service.d")
    m.run("sh", "-c", "rm /etc/psd/dtworker-*.conf; rm -r /var/lib/dtworker/* /var/lib/psd/*")
    m.run("apt-get", "purge", "--yes", "psd", "dtworker", timeout=300)
    expect(m.run("test", "-d", f"/proc/{pid}", check=False).returncode != 0, "psd has ended")
    left = m.run("find", "/etc/psd", "/var/lib/psd", "/var/lib/dtworker", "/usr/lib/systemd/system/psd.service",
                 "/usr/sbin/psd", check=False).stdout
    left = [line for line in left.splitlines() if line.startswith("/")]
    expect(not left, f"left behind: {left}")


def test_power_off(m, _):
    say(f"powered off in {m.power_off():.1f} s")


TESTS = (test_install, test_start_fails, test_start, test_train, test_reload, test_stop, test_kill,
         test_wedged_process, test_wedged_thread, test_journal, test_security, test_two_instances, test_purge,
         test_power_off)


def main():
    if os.geteuid() != 0:
        print("skipped: boot: only root can boot a machine")
        sys.exit(77)
    m = None
    try:
        packages.require("systemd-nspawn", "nsenter", "tar")
        debs = packages.build(sys.argv[1])
        m = machine.Machine(sys.argv[2], LIBRARIES)
        begin = time.monotonic()
        m.boot()
        print(f"booted in {time.monotonic() - begin:.1f} s", flush=True)
        packages.main(*TESTS, args=(m, debs), on_failure=m.tell)
    except packages.Skipped as why:
        print(f"skipped: {why}")
        sys.exit(77)
    except packages.Failed as what:
        print(f"FAILED: {what}")
        sys.exit(1)
    finally:
        if m:
            m.close()


main()
