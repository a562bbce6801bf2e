"""machine.py - a Debian in a temporary folder, booted by systemd-nspawn with a network of its own.

The smallest root is made once by mmdebstrap (else debootstrap) from the sources of this system's apt, and kept as
an archive; one with more packages is made from it, and kept too. Each test unpacks its own anew. What cannot be had
here raises Skipped with the step that failed."""
import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import zlib

import packages
from packages import Failed, Skipped, expect, run

BASE = ("systemd", "systemd-sysv", "dbus")
ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "",
       "DEBIAN_FRONTEND": "noninteractive", "HOME": "/"}
ROOM = 5 << 30  # bytes, for a root in memory; as much again is left to others
CLONE_NEWNS, PR_SET_PDEATHSIG = 0x20000, 1
INSTALL = """apt-get update -q
apt-get install -q -y --no-install-recommends "$@"
apt-get clean
rm -rf /var/lib/apt/lists/* /etc/resolv.conf
echo uninitialized >/etc/machine-id
"""


def wait_until(condition, what, timeout=60.0):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise Failed(f"not within {timeout:g} s: {what}")


def sources():
    """(suite, lines): the Debian that this system's apt knows."""
    with open("/etc/os-release", encoding="utf-8") as f:
        suite = re.search(r"^VERSION_CODENAME=(\w+)$", f.read(), re.M)
    if not suite:
        raise Skipped("root: the codename of this system is not known")
    said = run(["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI) $(CODENAME) $(COMPONENT)",
                "Created-By: Packages"]).stdout
    lines = ["deb " + line.removeprefix("Debian ") for line in said.splitlines() if line.startswith("Debian ")]
    if not lines:
        raise Skipped("root: apt has no sources of Debian (apt-get update)")
    return suite.group(1), sorted(set(lines))


def proxies():
    """Lines of apt's configuration."""
    return re.findall(r'^(Acquire::https?::Proxy "[^"]+";)$', run(["apt-config", "dump"]).stdout, re.M)


def make_root(partial):
    """An archive of the smallest Debian with apt; the temporary folders are those of the tools."""
    suite, lines = sources()
    if shutil.which("mmdebstrap"):
        argv = ["mmdebstrap", "--quiet", "--variant=minbase", "--format=tar", *(f"--aptopt={line}" for line in proxies()), suite,
                partial, *lines]
        return run(argv, 900, check=False)
    if shutil.which("debootstrap"):
        return debootstrap(suite, lines[0].split()[1], partial)
    raise Skipped("root: there is neither mmdebstrap nor debootstrap")


def extend_root(base, partial, names):
    """An archive of what is in `base` and these packages; like a new one it is no machine yet."""
    folder = tempfile.mkdtemp(prefix="psd-root-")
    groups_before = own_groups()
    try:
        in_memory(folder)
        root = os.path.join(folder, "root")
        os.mkdir(root)
        run(["tar", "-C", root, "--numeric-owner", "-xf", base], 300)
        said = run([*nspawn(root, f"psd-root-{os.getpid()}"), "--setenv=DEBIAN_FRONTEND=noninteractive", "/bin/sh",
                    "-ec", INSTALL, "sh", *names], 900, check=False, preexec_fn=die_with_parent)
        if said.returncode == 0:
            run(["tar", "-C", root, "--one-file-system", "--numeric-owner", "-cf", partial, "."], 300)
        return said
    finally:
        remove_groups(own_groups() - groups_before)
        remove(folder)


def keep(said, partial, archive):
    """The archive, if the programs that made it succeeded."""
    if said.returncode != 0:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        errors = [line for line in said.stdout.splitlines() if re.match(r"E:|Err:|W: Failure", line)]
        raise Skipped(f"root: it cannot be made here: {(errors or said.stdout.splitlines()[-1:] or ['no output'])[0]}")
    os.rename(partial, archive)


def debootstrap(suite, mirror, archive):
    folder = tempfile.mkdtemp(prefix="psd-root-")
    try:
        said = run(["debootstrap", "--variant=minbase", suite, folder, mirror], 900, check=False)
        if said.returncode == 0:
            with open(os.path.join(folder, "etc/apt/apt.conf.d/99proxy"), "w", encoding="ascii") as f:
                f.writelines(line + "\n" for line in proxies())
            run(["tar", "-C", folder, "--one-file-system", "--numeric-owner", "-cf", archive, "."], 300)
        return said
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def archive_of(cache, names):
    """The path of the archive with these packages; made when it is not there."""
    os.makedirs(cache, exist_ok=True)
    # another list of packages is another root
    archive = os.path.join(cache, f"root-{zlib.crc32(' '.join(names).encode()):08x}.tar")
    if not os.path.exists(archive):
        base = archive_of(cache, ()) if names else None
        begin = time.monotonic()
        partial = f"{archive}.partial"
        keep(extend_root(base, partial, names) if names else make_root(partial), partial, archive)
        print(f"made a root in {time.monotonic() - begin:.0f} s", flush=True)
    return archive


def nspawn(root, name):
    """The start of a command in the root, with this system's network. It is thrown away: nothing waits for a disk."""
    return ["systemd-nspawn", "--quiet", f"--directory={root}", f"--machine={name}", "--register=no", "--keep-unit",
            "--suppress-sync=yes", "--as-pid2", "--resolv-conf=copy-host", "--timezone=off", "--console=pipe"]


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def available_memory():
    """In bytes; not more than a container may use."""
    found = []
    with open("/proc/meminfo", encoding="ascii") as f:
        found += [int(kib) * 1024 for kib in re.findall(r"^MemAvailable: +(\d+) kB$", f.read(), re.M)]
    with contextlib.suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max", encoding="ascii") as f:
        found.append(int(f.read()))  # "max": none
    return min(found, default=0)


def in_memory(folder):
    """What is put in the folder is kept in memory, if there is plenty. The mount is this process's own: however it
    ends, nothing is left of it. A whole suite in a root needs more room."""
    if os.environ.get("PSD_FRESH") == "all" or available_memory() < 2 * ROOM or ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        return
    if run(["mount", "--make-rprivate", "/"], check=False).returncode == 0:
        run(["mount", "-t", "tmpfs", "-o", f"size={ROOM},mode=700", "psd-root", folder], check=False)


def remove(folder):
    if os.path.ismount(folder):
        run(["umount", "--lazy", folder], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as f:
            found += map(int, f.read().split())
    return found


def is_init(pid):
    """Process 1 of a namespace of its own."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="ascii") as f:
        ids = re.search(r"^NSpid:\s+(.*)$", f.read(), re.M)
        return bool(ids) and len(ids.group(1).split()) > 1 and ids.group(1).split()[-1] == "1"
    return False


def own_groups():
    """The control groups that systemd-nspawn makes below that of this process."""
    found = set()
    with open("/proc/self/cgroup", encoding="ascii") as f:
        for line in f.read().splitlines():
            number, name, path = line.split(":", 2)
            places = {"name=systemd": ("systemd",), "": ("", "unified")}.get(name, ()) if number else ()
            for place in places:
                for made in ("payload", "supervisor"):
                    found.add(os.path.normpath(f"/sys/fs/cgroup/{place}/{path}/{made}"))
    return {path for path in found if os.path.isdir(path)}


def remove_groups(groups):
    for group in groups:
        for folder, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):  # what is still in use stays
                os.rmdir(folder)


class Machine:
    """`cache`: the folder of the archive. To be closed."""

    def __init__(self, cache, more):
        if os.geteuid() != 0:
            raise Skipped("boot: only root can boot a machine")
        packages.require("systemd-nspawn", "nsenter", "tar")
        archive = archive_of(cache, (*BASE, *more))
        self.dir = tempfile.mkdtemp(prefix="psd-boot-")
        in_memory(self.dir)
        self.root = os.path.join(self.dir, "root")
        self.log_path = os.path.join(self.dir, "console")
        self.nspawn = self.leader = None
        remove_groups(own_groups())  # of one that was killed: systemd-nspawn would refuse to start beside them
        self.groups_before = own_groups()
        os.mkdir(self.root)
        try:
            run(["tar", "-C", self.root, "--numeric-owner", "-xf", archive], 300)
        except BaseException:
            self.close()
            raise

    def boot(self):
        with open(self.log_path, "wb") as log:
            self.nspawn = subprocess.Popen(
                ["systemd-nspawn", "--quiet", f"--directory={self.root}", "--machine=psd-boot", "--boot",
                 "--register=no", "--keep-unit", "--private-network", "--console=pipe", "--resolv-conf=off",
                 "--timezone=off", "systemd.log_color=no", "systemd.show_status=no"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            self.leader = wait_until(self._find_leader, "process 1 runs", 30)
            wait_until(self._is_up, "systemd has started", 120)
        except Failed as what:
            raise Skipped(f"boot: the machine does not start here: {what}: {self.console()}") from None

    def console(self):
        with open(self.log_path, errors="replace") as f:
            lines = [line.strip() for line in f.read().splitlines() if line.strip()]
        return " / ".join(lines[-5:]) or "no output"

    def _find_leader(self):
        expect(self.nspawn.poll() is None, f"systemd-nspawn ended with {self.nspawn.poll()}")
        return next((pid for pid in children(self.nspawn.pid) if is_init(pid)), None)

    def _is_up(self):
        expect(self.nspawn.poll() is None, f"systemd-nspawn ended with {self.nspawn.poll()}")
        said = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        return said in ("running", "degraded")

    def run(self, *argv, timeout=120, check=True):
        """A program of the machine, in all of its namespaces."""
        return run(["nsenter", "--target", str(self.leader), "--mount", "--uts", "--ipc", "--net", "--pid", "--",
                    *map(str, argv)], timeout, check, env=ENV)

    def network(self, *argv, timeout=60, check=True):
        """A program of this system in the machine's network."""
        return run(["nsenter", "--target", str(self.leader), "--net", "--", *map(str, argv)], timeout, check)

    def systemctl(self, *argv, timeout=120, check=True):
        return self.run("systemctl", *argv, timeout=timeout, check=check)

    def show(self, unit, name):
        return self.systemctl("show", "--value", "--property", name, unit).stdout.strip()

    def journal(self, unit):
        """[(priority, message)] of what the unit itself said."""
        said = self.run("journalctl", "--no-pager", "--output=json", f"_SYSTEMD_UNIT={unit}").stdout
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        return [(int(line.get("PRIORITY", -1)), str(line.get("MESSAGE"))) for line in lines]

    def tell(self):
        """The end of the journal, after a failure."""
        print(self.run("journalctl", "--no-pager", "--output=short-precise", "--lines=60", check=False).stdout)

    def path(self, name):
        return os.path.join(self.root, name.lstrip("/"))

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def host_pid(self, pid):
        """The pid on this system of one of the machine's."""
        for other in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{other}/status", encoding="ascii") as f:
                ids = re.search(r"^NSpid:\s+(.*)$", f.read(), re.M)
                if ids and ids.group(1).split()[1:] == [str(pid)] and self._is_mine(other):
                    return int(other)
        raise Failed(f"the machine has no process {pid}")

    def _is_mine(self, pid):
        return os.readlink(f"/proc/{pid}/ns/pid") == os.readlink(f"/proc/{self.leader}/ns/pid")

    def power_off(self):
        """Seconds that it took."""
        begin = time.monotonic()
        os.kill(self.leader, signal.SIGRTMIN + 4)
        try:
            code = self.nspawn.wait(60)
        except subprocess.TimeoutExpired:
            raise Failed("the machine does not power off within 60 s") from None
        expect(code == 0, f"systemd-nspawn ended with {code}")
        return time.monotonic() - begin

    def close(self):
        if self.nspawn and self.nspawn.poll() is None:
            for pid in (self.leader, self.nspawn.pid):  # with process 1 all others of its namespace end
                if pid:
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
            self.nspawn.wait()
        if self.nspawn:
            remove_groups(own_groups() - self.groups_before)
        remove(self.dir)
