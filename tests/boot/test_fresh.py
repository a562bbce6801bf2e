"""A fresh clone in a fresh root passes both commands of README: ./deploy/quickstart.sh and ./tests/run.sh.

test_fresh.py CACHE: a folder for the root's archive. The root is the smallest Debian that has apt: all that the
clone needs comes from deploy/packages.sh. tests/run.sh is run with the options of PSD_FRESH (default: those of
ORDINARY, which are quick); PSD_FRESH=all runs it without any, as a newcomer does. In the fresh root itself this
test is skipped."""
import contextlib
import ctypes
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import machine
import packages
from packages import Failed, Skipped, expect, run

ORDINARY = "--fast"
INSIDE = "PSD_FRESH_ROOT"  # set in the fresh root
LONG = 7200
PR_SET_PDEATHSIG = 1


def say(what):
    print(f"    {what}", flush=True)


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Fresh:
    """The root, with the clone in /psd. To be closed."""

    def __init__(self, cache):
        archive = machine.archive_of(cache, ())
        machine.remove_groups(machine.own_groups())  # of one that was killed
        self.groups_before = machine.own_groups()
        self.name = f"psd-fresh-{os.getpid()}"
        self.dir = tempfile.mkdtemp(prefix="psd-fresh-")
        self.root = os.path.join(self.dir, "root")
        self.log_path = os.path.join(self.dir, "output")
        os.mkdir(self.root)
        try:
            run(["tar", "-C", self.root, "--numeric-owner", "-xf", archive], 300)
            with open(os.path.join(self.root, "etc/hosts"), "w", encoding="ascii") as f:
                f.write("127.0.0.1 localhost\n::1 localhost\n")  # as Debian's installer leaves it
        except BaseException:
            self.close()
            raise

    def clone(self):
        """What is committed, as others get it. The repository may be another user's."""
        git = ["git", "-c", "safe.directory=*"]
        said = run([*git, "-C", packages.ROOT, "rev-parse", "--short", "HEAD"], check=False)
        if said.returncode != 0:
            raise Skipped(f"fresh: clone: {packages.ROOT} is no repository of git")
        cloned = run([*git, "clone", "--quiet", packages.ROOT, os.path.join(self.root, "psd")], 300, check=False)
        if cloned.returncode != 0:  # e.g. another user's: git does not let the far end trust it
            raise Skipped(f"fresh: clone: {cloned.stdout.strip()}")
        changed = run([*git, "-C", packages.ROOT, "status", "--porcelain"]).stdout.splitlines()
        more = f"; {len(changed)} changes that are not committed are not in it" if changed else ""
        say(f"the clone is of {said.stdout.strip()}{more}")

    def run(self, *argv):
        """(exit code, output) of a program in the root, in /psd; nothing of it outlives it."""
        with open(self.log_path, "wb") as log:
            nspawn = subprocess.Popen(
                ["systemd-nspawn", "--quiet", f"--directory={self.root}", f"--machine={self.name}", "--register=no",
                 "--keep-unit", "--as-pid2", "--resolv-conf=copy-host", "--timezone=off", "--console=pipe",
                 f"--setenv={INSIDE}=1", "--chdir=/psd", *argv],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=die_with_parent)
        try:
            code = nspawn.wait(LONG)
        except subprocess.TimeoutExpired:
            raise Failed(f"not ended within {LONG} s: {shlex.join(argv)}:\n{self.tail()}") from None
        finally:
            if nspawn.poll() is None:
                self.kill(nspawn)
        return code, self.output()

    def kill(self, nspawn):
        for pid in machine.children(nspawn.pid):  # with its process 1 all others end
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        nspawn.kill()
        nspawn.wait()

    def output(self):
        """Without what systemd-nspawn says itself at its end, which is about a folder that close() removes."""
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return re.sub(r"^Attempted to remove disk file system under .*\n", "", f.read(), flags=re.M)

    def tail(self):
        return "\n".join(self.output().splitlines()[-60:])

    def close(self):
        machine.remove_groups(machine.own_groups() - self.groups_before)
        with contextlib.suppress(OSError):  # systemd-nspawn leaves it
            os.rmdir(f"/run/systemd/nspawn/propagate/{self.name}")
        shutil.rmtree(self.dir, ignore_errors=True)


def command(fresh, *argv):
    """The output; a failure shows its end."""
    begin = time.monotonic()
    code, text = fresh.run(*argv)
    expect(code == 0, f"{shlex.join(argv)} ended with {code}:\n{fresh.tail()}")
    say(f"{shlex.join(argv)}: {time.monotonic() - begin:.0f} s")
    return text


def test_root(fresh):
    """Nothing of the list is there that a newcomer would have to install."""
    _, text = fresh.run("/bin/bash", "-c", '. deploy/packages.sh; packages_missing "${packages_build[@]}" '
                        '"${packages_test[@]}" "${packages_data[@]}" | wc -l; '
                        'set -- "${packages_build[@]}" "${packages_test[@]}" "${packages_data[@]}"; echo $#')
    missing, listed = map(int, text.split())
    say(f"{missing} of {listed} packages are missing")
    expect(missing >= listed - 2, "the root has packages of the list already")


def test_quickstart(fresh):
    text = command(fresh, "./deploy/quickstart.sh")
    found = re.findall(r"^test accuracy .*$", text, re.M)
    expect(found, f"quickstart.sh prints no test accuracy:\n{fresh.tail()}")
    say(found[-1])


def test_tests(fresh):
    options = shlex.split(os.environ.get("PSD_FRESH") or ORDINARY)
    text = command(fresh, "./tests/run.sh", *([] if options == ["all"] else options))
    for line in text.splitlines():
        if "skipped: " in line:
            say(line.strip())
    last = text.splitlines()[-1]
    expect(re.match(r"100% tests passed, 0 tests failed out of [1-9]", last), f"tests/run.sh ends with: {last}")
    say(last)


def main():
    fresh = None
    try:
        if os.environ.get(INSIDE):
            raise Skipped("fresh: this is the fresh root")
        if os.geteuid() != 0:
            raise Skipped("fresh: only root can make a root")
        packages.require("systemd-nspawn", "tar", "git")
        fresh = Fresh(sys.argv[1])
        fresh.clone()
        packages.main(test_root, test_quickstart, test_tests, args=(fresh,))
    except Skipped as why:
        print(f"skipped: {why}")
        sys.exit(77)
    except Failed as what:
        print(f"FAILED: {what}")
        sys.exit(1)
    finally:
        if fresh:
            fresh.close()


signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
main()
