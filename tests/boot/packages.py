"""packages.py - builds the Debian packages in a build of their own, and looks into them."""
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAMES = ("psd", "dtworker", "libdtworker1", "libdtworker-dev")


class Failed(Exception):
    """An expectation did not hold."""


class Skipped(Exception):
    """The test cannot run here."""


def expect(condition, what):
    if not condition:
        raise Failed(what)


def run(argv, timeout=120, check=True, **more):
    """The completed process; its output is text, stdout and stderr together."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=timeout, check=False, **more)
    except subprocess.TimeoutExpired:
        raise Failed(f"not ended within {timeout:g} s: {' '.join(argv)}") from None
    if check:
        tail = "\n".join(done.stdout.splitlines()[-30:])
        expect(done.returncode == 0, f"{' '.join(argv)} ended with {done.returncode}:\n{tail}")
    return done


def require(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skipped(f"there is no {program}")


def build(folder):
    """{name: path of the package}. The folder is kept: a second build is short."""
    require("cmake", "dpkg-deb", "dpkg-shlibdeps", "gzip")
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    run(["cmake", "-S", ROOT, "-B", folder, *generator, *launcher, "-DCMAKE_BUILD_TYPE=Release",
         "-DCMAKE_INSTALL_PREFIX=/usr", "-DPSD_TESTS=OFF"])
    for name in os.listdir(folder):
        if name.endswith(".deb"):
            os.unlink(os.path.join(folder, name))
    run(["cmake", "--build", folder, "--parallel", "2"], 1200)
    run(["cmake", "--build", folder, "--target", "package"], 300)
    found = {n.split("_")[0]: os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(".deb")}
    expect(set(found) == set(NAMES), f"the packages are {', '.join(NAMES)}, not {', '.join(sorted(found))}")
    return found


def main(*tests, args=(), on_failure=lambda: None):
    """Run the functions in order; exit 0, 1 or 77: one was skipped, and what follows it. If the last one alone was,
    the line says so, and what was tested counts."""
    for test in tests:
        try:
            test(*args)
        except Skipped as why:
            print(f"{test.__name__}: skipped: {why}")
            sys.exit(0 if tests[:-1] and test is tests[-1] else 77)
        except Failed as what:
            print(f"{test.__name__}: FAILED: {what}", flush=True)
            on_failure()
            sys.exit(1)
        print(f"{test.__name__}: ok", flush=True)
