"""What `cmake --install` gives a developer: programs in C and in C++ are built against it with pkg-config, with
CMake and with the static library, and run against a real psd; all of it goes below DESTDIR and nowhere else."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))
import harness
from harness import Skipped, expect

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD, CMAKE = os.environ.get("PSD_BUILD_DIR", ""), os.environ.get("PSD_CMAKE", "cmake")
CC, CXX = os.environ.get("PSD_CC", "cc"), os.environ.get("PSD_CXX", "")
VERSION, SANITIZE = os.environ.get("PSD_VERSION", ""), os.environ.get("PSD_SANITIZE", "")
FLAGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"] + ([f"-fsanitize={SANITIZE}"] if SANITIZE else [])
C_SOURCE = os.path.join(harness.ROOT, "worker", "examples", "minimal.c")
CPP_SOURCE = os.path.join(HERE, "consumer", "consumer.cpp")


def run(argv, env=None, code=0, timeout=300, cwd=None):
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=timeout, cwd=cwd,
                          env={**os.environ, **(env or {})})
    expect(done.returncode == code, f"{' '.join(argv)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def install(prefix, *args, env=None):
    if not BUILD:
        raise Skipped("PSD_BUILD_DIR names no build")
    return run([CMAKE, "--install", BUILD, "--prefix", prefix, *args], env)


def install_library(bench):
    prefix = os.path.join(bench.dir, "prefix")
    for component in ("libdtworker1", "libdtworker-dev"):
        install(prefix, "--component", component)
    return prefix


def files_below(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, folders, names in os.walk(folder)
                  for name in names + [d for d in folders if os.path.islink(os.path.join(at, d))])


def find(prefix, name):
    found = [f for f in files_below(prefix) if os.path.basename(f) == name and "completions" not in f]
    expect(len(found) == 1, f"one {name} is installed: {found} of {files_below(prefix)}")
    return os.path.join(prefix, found[0])


def pkg_config(prefix, *args):
    folder = os.path.dirname(find(prefix, "libdtworker.pc"))
    path = ":".join(filter(None, (folder, os.environ.get("PKG_CONFIG_PATH"))))
    return run(["pkg-config", *args, "libdtworker"], {"PKG_CONFIG_PATH": path}).split()


def expect_works(bench, psd, program, prefix=None):
    """Run it against psd. A job of the same name may be there from the program before: psd is a new one each time."""
    env = {"LD_LIBRARY_PATH": os.path.dirname(find(prefix, "libdtworker.so"))} if prefix else None
    process = bench.start("consumer", [program, psd.endpoint], env)
    process.expect_exit(0)
    words = [float(word) for word in process.out().split()[2:]]
    expect(words in ([3, 3],) or (len(words) == 3 and abs(words[0] - 1.5) < 0.1), f"what it found: {process.out()}")


def build_and_run(bench, build, what, prefix=None):
    program = build()
    psd = bench.psd(shards=2)
    expect_works(bench, psd, program, prefix)
    psd.stop()
    print(f"  {what}: built and run")


def languages():
    """(name, compiler, standard flags, source)"""
    if not CXX:
        print("no C++ compiler: the programs in C++ are skipped")
    return [("C", CC, ["-std=c11", "-D_GNU_SOURCE"], C_SOURCE)] + (
        [("CXX", CXX, ["-std=c++11"], CPP_SOURCE)] if CXX else [])


def test_pkg_config(bench):
    first = install_library(bench)
    expect(pkg_config(first, "--modversion") == [VERSION], pkg_config(first, "--modversion"))
    prefix = os.path.join(bench.dir, "moved here")  # it finds itself
    os.rename(first, prefix.replace(" ", "-"))
    prefix = prefix.replace(" ", "-")
    flags = pkg_config(prefix, "--cflags", "--libs")
    expect("-ldtworker" in flags and "-lzmq" not in flags, f"a shared library needs nothing else named: {flags}")
    for name, compiler, standard, source in languages():
        program = os.path.join(bench.dir, f"pc-{name}")
        build_and_run(bench, lambda: run([compiler, *standard, *FLAGS, source, "-o", program, *flags]) or program,
                      f"pkg-config, {name}", prefix)
    archive = find(prefix, "libdtworker.a")
    rest = [f for f in pkg_config(prefix, "--static", "--libs") if f != "-ldtworker"]
    expect("-lzmq" in rest, f"a static one needs more: {rest}")
    program = os.path.join(bench.dir, "static")
    cflags = pkg_config(prefix, "--cflags")
    # Debian's libzmq.a names libraries that are there as shared ones only: libzmq itself stays shared.
    build_and_run(bench, lambda: run([CC, "-std=c11", "-D_GNU_SOURCE", *FLAGS, *cflags, C_SOURCE, "-o", program,
                                      archive, "-lzmq", "-pthread", "-lm"]) or program, "static library, C")


def test_cmake_package(bench):
    prefix = install_library(bench)
    for name, compiler, standard, source in languages():
        build = os.path.join(bench.dir, f"cmake-{name}")
        args = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCONSUMER_LANGUAGE={name}", f"-DSOURCES={source}",
                f"-DCMAKE_{name}_COMPILER={compiler}", f"-DWANTED_VERSION={VERSION}",
                f"-DCMAKE_{name}_FLAGS={' '.join(standard + FLAGS)}"]

        def cmake(build=build, args=args):
            run([CMAKE, "-S", os.path.join(HERE, "consumer"), "-B", build, *args])
            run([CMAKE, "--build", build])
            return os.path.join(build, "consumer")

        build_and_run(bench, cmake, f"find_package, {name}")
    args[-2] = "-DWANTED_VERSION=99.0"
    build = os.path.join(bench.dir, "cmake-99")
    done = subprocess.run([CMAKE, "-S", os.path.join(HERE, "consumer"), "-B", build, *args], capture_output=True,
                          text=True, check=False, timeout=300)
    expect(done.returncode != 0 and "99.0" in done.stderr, f"a later version is not to be had: {done.stderr}")


def test_header(bench):
    """It compiles alone, in each language and standard, without a warning."""
    folder = os.path.dirname(find(install_library(bench), "dtworker.h"))
    cases = [("C", CC, std) for std in ("c99", "c11", "gnu17")]
    cases += [("C++", CXX, std) for std in ("c++11", "c++17", "c++20") if CXX]
    for language, compiler, std in cases:
        suffix = "c" if language == "C" else "cpp"
        source = os.path.join(bench.dir, f"only.{suffix}")
        with open(source, "w", encoding="ascii") as f:
            f.write("#include <dtworker.h>\nextern const char *version;\nconst char *version = DTW_VERSION;\n")
        run([compiler, f"-std={std}", "-Wall", "-Wextra", "-pedantic", "-Wundef", "-Werror", f"-I{folder}", "-c", source,
             "-o", os.path.join(bench.dir, "only.o")])
        with open(os.path.join(bench.dir, "only.o"), "rb") as f:
            expect(VERSION.encode() + b"\0" in f.read(), f"DTW_VERSION is the project's {VERSION}")


def test_names(bench):
    """libdtworker.so -> libdtworker.so.1 -> the file; dtw_* alone can be seen in it and in libdtworker.a."""
    prefix = install_library(bench)
    library = find(prefix, "libdtworker.so")
    soname = os.path.join(os.path.dirname(library), os.readlink(library))
    expect(os.path.basename(soname) == "libdtworker.so.1", soname)
    expect(os.readlink(soname) == f"libdtworker.so.1.{VERSION}", os.readlink(soname))
    dynamic = run(["readelf", "-d", library])
    expect("Library soname: [libdtworker.so.1]" in dynamic, dynamic)
    expect("RPATH" not in dynamic and "RUNPATH" not in dynamic, f"no path of the build: {dynamic}")
    with open(os.path.join(harness.ROOT, "tests", "lint", "libdtworker.symbols"), encoding="ascii") as f:
        wanted = f.read().split()
    symbols = run(["nm", "-g", "--defined-only", find(prefix, "libdtworker.a")])
    found = sorted(line.split()[2] for line in symbols.splitlines() if len(line.split()) == 3)
    expect(found == sorted(wanted), f"global symbols of libdtworker.a: {set(found) ^ set(wanted)}")


def read_only_but(*folders):
    """argv in front of a command: a mount namespace in which only these folders can be written."""
    script = "mount --make-rprivate / && for d in $FOLDERS; do mount --bind $d $d || exit 99; done && " \
             "mount -o remount,bind,ro / && exec \"$@\""
    argv = ["unshare", "--mount", "env", f"FOLDERS={' '.join(folders)}", "sh", "-c", script, "sh"]
    if os.geteuid() != 0 or not shutil.which("unshare") or \
            subprocess.run([*argv, "true"], capture_output=True, check=False, timeout=60).returncode != 0:
        print("no mount namespace to be had: that nothing else is written is not proved by a read-only root")
        return []
    return argv


def test_destdir(bench):
    destdir, prefix = os.path.join(bench.dir, "dest"), "/opt/of/somebody"
    os.mkdir(destdir)
    if not BUILD:
        raise Skipped("PSD_BUILD_DIR names no build")
    text = run([*read_only_but(bench.dir, BUILD), CMAKE, "--install", BUILD, "--prefix", prefix],
               {"DESTDIR": destdir})
    said = sorted(line.split(": ", 1)[1] for line in text.splitlines() if line.startswith(("-- Installing: ", "-- Up-to-date: ")))
    found = [os.path.join(destdir, f) for f in files_below(destdir)]
    outside = [path for path in said if not path.startswith(destdir + "/")]
    expect(not outside, f"outside of DESTDIR: {outside}")
    expect([p for p in said if not os.path.isdir(p) or os.path.islink(p)] == found, f"all of it: {set(said) ^ set(found)}")
    strange = [f for f in files_below(destdir) if not f.startswith(prefix[1:] + "/")]
    expect(not strange, f"not below the prefix: {strange}")
    for name in ("psd", "psctl", "dtworker", "libdtworker.so.1", "dtworker.h", "psd-protocol.7"):
        find(destdir, name)
    for path in found:
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as f:
                content = f.read()
            expect(destdir.encode() not in content, f"{path} names DESTDIR")
            text_file = not content.startswith(b"\x7fELF") and not path.endswith(".a")
            expect(not text_file or BUILD.encode() not in content, f"{path} names the build")
    for name in ("psd", "psctl", "dtworker"):
        expect(VERSION in run([find(destdir, name), "--version"]), f"{name} runs from there")


harness.main(test_header, test_names, test_pkg_config, test_cmake_package, test_destdir)
