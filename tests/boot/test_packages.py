"""The Debian packages: what is in them, whom they depend on, what their scripts do, lintian.

test_packages.py BUILD: the packages are built in the folder BUILD, which is kept."""
import os
import re
import shutil
import sys
import tempfile

import packages
from packages import expect, run

LIB = r"\./usr/lib/[a-z0-9_]+-linux-gnu[a-z0-9_]*/"
CONTENTS = {  # each must be there
    "psd": (r"\./usr/sbin/psd", r"\./usr/bin/psctl", r"\./etc/psd/psd\.conf", r"\./usr/lib/systemd/system/psd\.service",
            r"\./usr/lib/systemd/system/psd@\.service", r"\./usr/lib/sysusers\.d/psd\.conf",
            r"\./usr/share/man/man7/psd-protocol\.7\.gz"),
    "dtworker": (r"\./usr/bin/dtworker", r"\./usr/lib/systemd/system/dtworker@\.service",
                 r"\./usr/lib/sysusers\.d/dtworker\.conf"),
    "libdtworker1": (LIB + r"libdtworker\.so\.1", LIB + r"libdtworker\.so\.1\.[0-9.]+"),
    "libdtworker-dev": (r"\./usr/include/dtworker\.h", LIB + r"libdtworker\.so", LIB + r"pkgconfig/libdtworker\.pc",
                        LIB + r"cmake/libdtworker/libdtworkerConfig\.cmake"),
}
PAGES = {"psd": ("psd.8", "psd.conf.5", "psctl.1"), "dtworker": ("dtworker.1",), "libdtworker-dev": ("libdtworker.3",)}
DEPENDS = {
    "psd": {"libc6", "libzmq5", "libinih1", "libjansson4", "libsystemd0", "systemd"},
    "dtworker": {"libc6", "libzmq5", "libjansson4", "libopenblas0", "libxxhash0", "zlib1g", "systemd"},
    "libdtworker1": {"libc6", "libzmq5"},
    "libdtworker-dev": {"libdtworker1", "libzmq3-dev"},
}


def contents(deb):
    """{path: (mode, owner)} of what is no folder."""
    found = {}
    for line in run(["dpkg-deb", "--contents", deb]).stdout.splitlines():
        mode, owner, _, _, _, path = line.split(None, 5)
        if mode[0] != "d":
            found[path.split(" -> ")[0]] = (mode, owner)
    return found


def field(deb, name):
    return run(["dpkg-deb", "--field", deb, name]).stdout.strip()


def test_contents(debs):
    owners = {}
    for name, deb in debs.items():
        files = contents(deb)
        wanted = list(CONTENTS[name]) + [rf"\./usr/share/doc/{name}/copyright", rf"\./usr/share/doc/{name}/changelog\.gz"]
        for page in PAGES.get(name, ()):
            if os.path.exists(os.path.join(packages.ROOT, "man", page)):
                wanted.append(rf"\./usr/share/man/man{page[-1]}/{re.escape(page)}\.gz")
        for pattern in wanted:
            expect(any(re.fullmatch(pattern, path) for path in files), f"{name} has no {pattern}")
        for path, (mode, owner) in files.items():
            writable = mode[0] != "l" and (mode[5] == "w" or mode[8] == "w" or "s" in mode)
            expect(owner == "root/root" and not writable, f"{name}: {mode} {owner} {path}")
            expect(path not in owners, f"{path} is in {name} and in {owners.get(path)}")
            owners[path] = name
        print(f"{name}: {os.path.getsize(deb)} bytes, {field(deb, 'Installed-Size')} KiB installed")


def test_dependencies(debs):
    for name, deb in debs.items():
        depends = field(deb, "Depends")
        print(f"{name}: {depends}")
        found = {re.split(r"[ (|]", d.strip())[0] for d in depends.split(",")}
        # a later Debian may call a library libX64 or libXt64
        found = {re.sub(r"t64$", "", d) for d in found}
        expect(found == DEPENDS[name], f"{name} depends on {sorted(found)}, not on {sorted(DEPENDS[name])}")
        version = field(deb, "Version")
        if name == "libdtworker-dev":
            expect(f"libdtworker1 (= {version})" in depends, "the development package needs its own library")


def test_scripts(debs):
    folder = tempfile.mkdtemp(prefix="psd-")
    try:
        for name, deb in debs.items():
            control = os.path.join(folder, name)
            run(["dpkg-deb", "--control", deb, control])
            for script in ("postinst", "prerm", "postrm"):
                path = os.path.join(control, script)
                if not os.path.exists(path):
                    continue
                run(["sh", "-n", path])
                with open(path, encoding="utf-8") as f:
                    commands = re.sub(r'"[^"\n]*"', "", f.read())
                found = re.search(r"^[^#\n]*systemctl.*\b(enable|start|restart|preset)\b", commands, re.M)
                expect(not found, f"{name}: {script} enables or starts something: {found and found.group(0)}")
        with open(os.path.join(folder, "psd", "conffiles"), encoding="utf-8") as f:
            expect(f.read() == "/etc/psd/psd.conf\n", "psd.conf is the one file of the administrator")
        with open(os.path.join(folder, "libdtworker1", "shlibs"), encoding="utf-8") as f:
            expect(f.read().startswith("libdtworker 1 libdtworker1 (>= "), "shlibs name the package")
    finally:
        shutil.rmtree(folder)


def test_unpacked(debs):
    """The programs find their configuration good; it listens on loopback and ipc only; units are well formed."""
    folder = tempfile.mkdtemp(prefix="psd-")
    try:
        for deb in debs.values():
            run(["dpkg-deb", "--extract", deb, folder])
        config = os.path.join(folder, "etc/psd/psd.conf")
        psd = os.path.join(folder, "usr/sbin/psd")
        run([psd, "--file", config, "--check"])
        listens = re.findall(r"^listen *= *(.*)$", run([psd, "--file", config, "--dump-config"]).stdout, re.M)
        expect(listens == ["tcp://127.0.0.1:2222", "ipc:///run/psd/psd.ipc"], f"it listens on {listens}")
        for program in ("usr/bin/psctl", "usr/bin/dtworker"):
            run([os.path.join(folder, program), "--version"])
    finally:
        shutil.rmtree(folder)


def test_lintian(debs):
    if not shutil.which("lintian"):
        raise packages.Skipped("the packages are tested but for lintian, which is not installed (tests/run.sh --slow "
                               "installs it)")
    root = ["--allow-root"] if os.geteuid() == 0 else []
    said = run(["lintian", *root, "--fail-on", "error", "--tag-display-limit", "0", *debs.values()], 300, check=False)
    print(said.stdout, end="")
    expect(said.returncode == 0, "lintian finds errors")


def main():
    try:
        debs = packages.build(sys.argv[1])
    except packages.Skipped as why:
        print(f"skipped: {why}")
        sys.exit(77)
    except packages.Failed as what:
        print(f"FAILED: {what}")
        sys.exit(1)
    packages.main(test_contents, test_dependencies, test_scripts, test_unpacked, test_lintian, args=(debs,))


main()
