"""A fresh clone in a fresh root passes both commands of README: ./deploy/quickstart.sh and ./tests/run.sh.

test_fresh.py CACHE: a folder for the root's archive. The root is the smallest Debian that has apt: all that the
clone needs comes from deploy/packages.sh. tests/run.sh installs and builds all that --fast needs and runs a SLICE of its
tests, none of which may be skipped: a package that is not in the list is missed. PSD_FRESH has other options for it (so
tests/run.sh --slow runs --fast whole); PSD_FRESH=all runs it without any, as a newcomer does. What the outer build has
compiled comes from its compiler cache, where there is one: the clone has the place of the outer one. Headers are compared
with it by their text, and one that is missing is missed. In the fresh root itself this test is skipped."""
import contextlib
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

# Of --fast; each needs something that deploy/packages.sh lists.
SLICE = ("lint_format", "lint_man", "lint_symbols", "lint_completion", "unit_base", "system_csv",
         "system_compare", "system_python_client", "system_signals")
# What the other tests need of it.
MORE = ("/usr/bin/clang-tidy", "/usr/share/i18n/locales/de_DE", "/usr/bin/mmdebstrap", "/usr/bin/systemd-nspawn")
INSIDE = "PSD_FRESH_ROOT"  # set in the fresh root
LONG = 7200


def say(what):
    print(f"    {what}", flush=True)


class Fresh:
    """The root, with the clone where the outer one is. To be closed."""

    def __init__(self, cache):
        archive = machine.archive_of(cache, ())
        machine.remove_groups(machine.own_groups())  # of one that was killed
        self.groups_before = machine.own_groups()
        self.name = f"psd-fresh-{os.getpid()}"
        self.dir = tempfile.mkdtemp(prefix="psd-fresh-")
        machine.in_memory(self.dir)
        self.root = os.path.join(self.dir, "root")
        self.clone_path = os.path.join(self.dir, "clone")
        self.binds = [f"--bind={self.clone_path}:{packages.ROOT}", *self.compiler_cache()]
        self.log_path = os.path.join(self.dir, "output")
        os.mkdir(self.root)
        try:
            run(["tar", "-C", self.root, "--numeric-owner", "-xf", archive], 300)
            with open(os.path.join(self.root, "etc/hosts"), "w", encoding="ascii") as f:
                f.write("127.0.0.1 localhost\n::1 localhost\n")  # as Debian's installer leaves it
        except BaseException:
            self.close()
            raise

    def compiler_cache(self):
        if not shutil.which("ccache"):
            return []
        path = run(["ccache", "--get-config", "cache_dir"]).stdout.strip()
        os.makedirs(path, exist_ok=True)
        return [f"--bind={path}:/ccache", "--setenv=CCACHE_DIR=/ccache"]

    def clone(self):
        """What is committed, as others get it. The repository may be another user's."""
        git = ["git", "-c", "safe.directory=*"]
        said = run([*git, "-C", packages.ROOT, "rev-parse", "--short", "HEAD"], check=False)
        if said.returncode != 0:
            raise Skipped(f"fresh: clone: {packages.ROOT} is no repository of git")
        cloned = run([*git, "clone", "--quiet", packages.ROOT, self.clone_path], 300, check=False)
        if cloned.returncode != 0:  # e.g. another user's: git does not let the far end trust it
            raise Skipped(f"fresh: clone: {cloned.stdout.strip()}")
        changed = run([*git, "-C", packages.ROOT, "status", "--porcelain"]).stdout.splitlines()
        more = f"; {len(changed)} changes that are not committed are not in it" if changed else ""
        say(f"the clone is of {said.stdout.strip()}{more}")

    def run(self, *argv):
        """(exit code, output) of a program in the root, in the clone; nothing of it outlives it."""
        with open(self.log_path, "wb") as log:
            nspawn = subprocess.Popen(
                [*machine.nspawn(self.root, self.name), f"--setenv={INSIDE}=1", *self.binds,
                 f"--chdir={packages.ROOT}", *argv],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=machine.die_with_parent)
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
        machine.remove(self.dir)


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


def run_tests(fresh, *options):
    """The lines of skipped ones, and how many tests there were."""
    text = command(fresh, "./tests/run.sh", *options)
    skipped = [line.strip() for line in text.splitlines() if "skipped: " in line]
    last = text.splitlines()[-1]
    for line in (*skipped, last):
        say(line)
    passed = re.match(r"100% tests passed, 0 tests failed out of ([1-9]\d*)", last)
    expect(passed, f"tests/run.sh ends with: {last}")
    return skipped, int(passed[1])


def test_tests(fresh):
    options = shlex.split(os.environ.get("PSD_FRESH", ""))
    if options:
        run_tests(fresh, *([] if options == ["all"] else options))
        return
    skipped, n = run_tests(fresh, "--fast", "-R", f"^({'|'.join(SLICE)})$")
    expect(not skipped, f"a test lacks something in the fresh root: {skipped}")
    expect(n == len(SLICE), f"{n} tests have the names of {SLICE}")
    missing = [path for path in MORE if not os.path.lexists(fresh.root + path)]
    expect(not missing, f"no package of the list has {missing}")


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
