"""The units as they are installed: well formed, hardened, and with the paths of the prefix.

test_units.py BUILD PREFIX: a build that is configured and built, and its prefix. No root needed."""
import os
import re
import shutil
import sys
import tempfile

import packages
from packages import expect, run

MOST = 1.5  # exposure, as systemd-analyze security counts it
UNITS = ("psd.service", "psd@.service", "dtworker@.service")


def install(build, destdir, *more):
    """Only what does not need the whole build: units, users, configuration and programs that are there."""
    for component in ("psd", "dtworker"):
        run(["cmake", "--install", build, "--component", component, *more], env={**os.environ, "DESTDIR": destdir})


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def check(build, prefix, folder):
    install(build, folder)
    own = os.path.normpath(f"{folder}/{prefix}")
    conf = "/etc/psd" if prefix == "/usr" else f"{prefix}/etc/psd"
    units = os.path.join(own, "lib/systemd/system")
    expect(f"ExecStart={prefix}/sbin/psd --file {conf}/psd.conf\n" in read(units, "psd.service"), "psd.service: paths")
    expect(f"ExecStart={prefix}/bin/dtworker " in read(units, "dtworker@.service"), "dtworker@.service: paths")
    expect(f"EnvironmentFile={conf}/dtworker-%i.conf" in read(units, "dtworker@.service"), "its configuration")
    expect(re.search(r"^u psd ", read(own, "lib/sysusers.d/psd.conf"), re.M), "the user psd")
    expect("\nlisten = ipc:///run/psd/psd.ipc\n" in read(folder + conf, "psd.conf"), "psd.conf listens on ipc")
    for path in (f"{prefix}/sbin/psd", f"{prefix}/bin/dtworker", f"{prefix}/bin/psctl"):
        expect(os.access(folder + path, os.X_OK), f"{path} is installed")


def verify(prefix, folder):
    packages.require("systemd-analyze")
    units = os.path.normpath(f"{folder}/{prefix}/lib/systemd/system")
    for unit in UNITS:
        # the programs and manual pages are not those of this system
        text = read(units, unit).replace(f"={prefix}/", f"={folder}{prefix}/")
        text = re.sub(r"^Documentation=.*\n", "", text, flags=re.M)
        path = os.path.join(folder, unit.replace("@", "@x"))
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        said = run(["systemd-analyze", "verify", "--man=no", path], check=False)
        expect(said.returncode == 0 and not said.stdout, f"{unit} is well formed: {said.stdout}")
        said = run(["systemd-analyze", "security", "--offline=true", f"--threshold={MOST * 10:g}", path], check=False)
        line = re.search(r"Overall exposure level.*: ([0-9.]+)", said.stdout)
        expect(line, f"{unit} has a score: {said.stdout[-300:]}")
        print(f"{unit}: exposure {line.group(1)}")
        expect(float(line.group(1)) <= MOST, f"{unit} is exposed no more than {MOST}")


def test_units(build, prefix):
    folder = tempfile.mkdtemp(prefix="psd-")
    try:
        check(build, prefix, folder)
        verify(prefix, folder)
    finally:
        shutil.rmtree(folder)


packages.main(test_units, args=sys.argv[1:3])
