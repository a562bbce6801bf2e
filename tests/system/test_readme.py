"""Every command in README.md does what it says: its code blocks, in order, against the built programs.

A section (heading) is one session. What is changed in a command before it runs, and nothing else:
- the folder is a private one, with links to what is in the source tree; HOME and TMPDIR are there, too;
- the built programs come first in PATH; worker/examples/client.py is run by /usr/bin/python3;
- each host and port has a free port of 127.0.0.1; what listens on 0.0.0.0 does so for the hosts that the comment
  before it names ("# on ps1 and ps2": one psd each); psd's admin socket is in a private folder, where psctl asks;
- Fashion-MNIST is tests/data where it is not installed;
- psd runs until its section ends, and is then stopped by SIGTERM; `dtworker train`, ./minimal and client.py of one
  block run side by side;
- cc finds the library as `cmake --install` puts it, and has the sanitizer of the build;
- what would change the machine or build anew (sudo, apt, systemctl, journalctl, cp, cmake, tests/run.sh, quickstart.sh)
  is not run: its names are looked up among presets, packages and units. `systemctl enable --now psd` starts a psd
  with the sample configuration instead.
A block or command that none of these rules knows fails the test."""
import json
import os
import re
import shlex
import subprocess

import harness
from harness import Failed, ROOT, expect

SHELLS = ("", "sh", "bash")
WORKER = re.compile(r"dtworker train |\./minimal |worker/examples/client\.py ")
# Of which file in deploy/ something in the installed system is made.
INSTALLED = {"/etc/psd/psd.conf": "psd.conf",
             "/usr/share/doc/dtworker/examples/dtworker-example.conf": "systemd/dtworker-example.conf"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def blocks(text):
    """(heading, line number, language, lines): indented blocks are shell."""
    heading, fence, block = "", None, []
    for number, line in enumerate([*text.splitlines(), "."], 1):
        if fence is not None:
            if line.startswith("```"):
                yield heading, start, fence or "text", block
                fence, block = None, []
            else:
                block.append(line)
        elif line.startswith("```"):
            fence, start = line[3:].strip(), number + 1
        elif line.startswith("    ") or (block and not line):
            start = start if block else number
            block.append(line[4:])
        else:
            if block:
                yield heading, start, "sh", block
            block = []
            if line.startswith("#"):
                heading = line.lstrip("# ")


def commands(start, lines):
    """(line number, comment before it, command): continued lines are one; a loop is one."""
    comment, command, first = "", "", start
    for number, line in enumerate(lines, start):
        if not command:
            first = number
            if line.startswith("#"):
                comment = line[1:].strip()
                continue
        command += re.sub(r"\s+#.*$", "", line) + "\n"
        if line.endswith("\\") or (command.startswith("for ") and not line.startswith("done")):
            continue
        if command.strip():
            yield first, comment, command.replace("\\\n", " ").strip()
            comment = ""
        command = ""


class Session:
    def __init__(self, bench):
        self.bench, self.ports, self.psds, self.workers, self.files = bench, {}, [], [], set()
        self.bin = os.path.join(bench.dir, "bin")
        self.data = harness.FASHION if os.path.isdir(harness.FASHION) else harness.digits()
        for name in os.listdir(ROOT):
            if not name.startswith((".", "build")):
                os.symlink(os.path.join(ROOT, name), os.path.join(bench.dir, name))
        os.mkdir(self.bin)
        bench.env.update(HOME=bench.dir, PATH=f"{self.bin}:{harness.BIN}:{bench.env.get('PATH', '/usr/bin:/bin')}")

    def port(self, host, port):
        return self.ports.setdefault((host, port), harness.free_port())

    def adapt(self, command, host="127.0.0.1"):
        command = re.sub(r"tcp://([\w.]+):(\d+)",
                         lambda m: f"tcp://127.0.0.1:{self.port(host if m[1] == '0.0.0.0' else m[1], m[2])}", command)
        for path, source in INSTALLED.items():
            command = command.replace(path, os.path.join(ROOT, "deploy", source))
        return command.replace(harness.FASHION, self.data)

    def start_psd(self, command):
        number = len(self.bench.processes)
        folder = os.path.join(self.bench.dir, f"run{number}")
        argv = shlex.split(command)
        if not re.search(r"--listen|-l ", command):
            argv += ["--listen", f"tcp://127.0.0.1:{self.port('127.0.0.1', '2222')}"]
        psd = self.bench.start("psd", argv, {"RUNTIME_DIRECTORY": folder})
        self.psds.append(psd)

        def admin():
            expect(psd.is_alive(), f"psd ended with {psd.popen.poll()}: {psd.err()}")
            return os.path.isdir(folder) and [n for n in os.listdir(folder) if n.endswith(".sock")]
        psd.admin = f"ipc://{folder}/{harness.wait_until(admin, 'psd listens')[0]}"

    def run(self, command):
        """To its end; what it prints is in the report when it fails."""
        self.finish_workers()
        done = self.bench.start("shell", ["/bin/bash", "-e", "-u", "-c", command])
        done.expect_exit(0, 1200)
        return done

    def finish_workers(self):
        for worker in self.workers:
            worker.expect_exit(0, 1200)
        self.workers = []

    def end(self):
        self.finish_workers()
        for psd in self.psds:
            psd.signal(15)
            psd.expect_exit(0)
        self.psds, self.ports, self.files = [], {}, set()


# What is run.

def run_psd(s, command, comment):
    hosts = re.findall(r"ps\d+", comment) or ["127.0.0.1"]
    for host in hosts:
        s.start_psd(s.adapt(command, host))


def run_worker(s, command, _):
    argv = shlex.split(s.adapt(command))
    if argv[0].endswith(".py"):
        argv.insert(0, "/usr/bin/python3")
    s.workers.append(s.bench.start("worker", argv))


def run_program(s, command, _):
    s.run(s.adapt(command))


def run_psctl(s, command, _):
    expect(s.psds, "no psd runs in this section")
    s.run(command.replace("psctl ", f"psctl --admin {s.psds[0].admin} ", 1))


def run_cc(s, command, _):
    build, prefix = os.path.dirname(harness.BIN), os.path.join(s.bench.dir, "prefix")
    for component in ("libdtworker1", "libdtworker-dev"):
        subprocess.run(["cmake", "--install", build, "--prefix", prefix, "--component", component], check=True,
                       stdout=subprocess.DEVNULL, timeout=120)
    libraries = {f for f, _, names in os.walk(prefix) if "libdtworker.so" in names}
    s.bench.env.update(PKG_CONFIG_PATH=os.path.join(*libraries, "pkgconfig"), LD_LIBRARY_PATH=libraries.pop())
    make_cc(s)
    s.run(command)


def run_cc_in_build(s, command, _):
    """build/release is this build."""
    make_cc(s)
    s.run(command.replace("$PWD/build/release", os.path.dirname(harness.BIN)).replace("build/release", os.path.dirname(harness.BIN)))
    s.run("ldd minimal | grep -q libdtworker.so.1")


def make_cc(s):
    """The compiler with the sanitizers of this build."""
    with open(os.path.join(os.path.dirname(harness.BIN), "CMakeCache.txt"), encoding="utf-8") as f:
        sanitize = re.search(r"^PSD_SANITIZE:STRING=(.+)$", f.read(), re.M)
    with open(os.path.join(s.bin, "cc"), "w", encoding="utf-8") as f:
        f.write(f'#!/bin/sh\nexec /usr/bin/cc {f"-fsanitize={sanitize[1]}" if sanitize else ""} "$@"\n')
    os.chmod(os.path.join(s.bin, "cc"), 0o755)


def run_bench(s, command, _):
    s.run(command.replace("build/release/bin", harness.BIN) + " --seconds 0.05")


# What is looked up.

def check_path(_, command, __):
    folder = re.fullmatch(r'export PATH="\$PWD/(\S+)/bin:\$PATH"', command)
    expect(folder and folder[1] in presets().values(), "no preset builds there")


def presets():
    """Name -> build folder of the presets that can be used."""
    return {p["name"]: f"build/{p['name']}" for p in json.loads(read("CMakePresets.json"))["configurePresets"]
            if not p.get("hidden")}


def check_cmake(_, command, __):
    for part in command.split("&&"):
        preset = re.search(r"--preset (\S+)", part)
        folder = re.search(r"--build (build/\S+)", part)
        expect(preset or folder, f"which preset is meant: {part}")
        expect(not preset or preset[1] in presets(), f"there is no preset {preset and preset[1]}")
        expect(not folder or folder[1] in presets().values(), f"no preset builds in {folder and folder[1]}")


def check_script(_, command, __):
    script, *args = shlex.split(command)
    expect(os.access(os.path.join(ROOT, script), os.X_OK), f"{script} cannot be run")
    subprocess.run(["bash", "-n", os.path.join(ROOT, script)], check=True, timeout=60)
    for arg in args:
        expect(re.search(rf"^\s*\(?{re.escape(arg)}[)|]|\|{re.escape(arg)}\)", read(script), re.M),
               f"{script} does not know {arg}")


def check_apt(_, command, __):
    ours = re.search(r"CPACK_COMPONENTS_ALL ([^)]*)\)", read("deploy/package.cmake"))[1].split()
    debian = read("deploy/packages.sh").split()
    for name in shlex.split(command)[2:]:
        package = re.fullmatch(r"\./build/package/([\w-]+)_\*\.deb", name)
        if package:
            expect(package[1] in ours, f"package {package[1]} is not built")
        else:
            expect(name in debian, f"package {name} is not in deploy/packages.sh")


def unit(s, name):
    """The text of its file; the configuration of an instance was made before."""
    stem, at, instance = name.partition("@")
    path = f"deploy/systemd/{stem}{at}.service.in"
    expect(os.path.exists(os.path.join(ROOT, path)), f"there is no unit {name}")
    text = read(path)
    if at:
        files = [f.replace("%i", instance) for f in re.findall(r"@PSD_CONFDIR@/(\S*%i\S*\.conf)$", text, re.M)]
        expect(files and f"/etc/psd/{files[0]}" in s.files, f"{name} reads {files}, which was not made before")
    return text


def check_systemctl(s, command, _):
    verb, *rest = shlex.split(command)[1:]
    expect(verb in ("enable", "start", "stop", "restart", "reload", "status", "disable"), f"no verb {verb}")
    for name in rest:
        if name.startswith("-"):
            expect(name == "--now", f"option {name}")
            continue
        text = unit(s, name)
        expect("[Install]" in text or verb not in ("enable", "disable"), f"{name} cannot be enabled")
        expect("ExecReload=" in text or verb != "reload", f"{name} cannot be reloaded")
        if name == "psd" and (verb == "start" or (verb == "enable" and "--now" in rest)):
            exec_start = re.search(r"^ExecStart=@PSD_SBINDIR@/(.*)$", text, re.M)[1]
            s.start_psd(s.adapt(exec_start.replace("@PSD_CONFDIR@", "/etc/psd")))


def check_journalctl(s, command, _):
    for name in re.findall(r"-u (\S+)", command):
        unit(s, name)


def check_cp(s, command, _):
    source, target = shlex.split(command)[1:]
    expect(source in INSTALLED, f"{source} is not installed")
    name = INSTALLED[source]
    expect(name in read("deploy/CMakeLists.txt") and os.path.exists(os.path.join(ROOT, "deploy", name)),
           f"deploy/CMakeLists.txt installs no {name}")
    expect(os.path.dirname(target) == "/etc/psd", f"the units read /etc/psd, not {target}")
    s.files.add(target)


RULES = (
    (r"psd .*--check$", run_program),
    (r"psd( |$)", run_psd),
    (WORKER.pattern, run_worker),
    (r"dtworker (run|compare|eval|replay|check) ", run_program),
    (r"cmp ", run_program),
    (r"for \w+ in [\w\s-]+; do\n\s+dtworker run [^\n]*\ndone$", run_program),
    (r"psctl (status|placement)$", run_psctl),
    (r"cc .* -L build/release/lib ", run_cc_in_build),
    (r"cc ", run_cc),
    (r"build/release/bin/bench_hot$", run_bench),
    (r"export PATH=", check_path),
    (r"cmake --preset ", check_cmake),
    (r"(\./deploy/quickstart\.sh|tests/run\.sh)( |$)", check_script),
    (r"apt install ", check_apt),
    (r"systemctl ", check_systemctl),
    (r"journalctl ", check_journalctl),
    (r"cp ", check_cp),
)


def run_command(s, command, comment):
    command = command.removeprefix("sudo ")
    for pattern, rule in RULES:
        if re.match(pattern, command):
            rule(s, command, comment)
            return
    raise Failed(f"no rule knows how to run '{command}'")


def check_c(lines):
    source = read("worker/examples/minimal.c").splitlines()
    for line in lines:
        expect(line in source, f"worker/examples/minimal.c has no line '{line}'")


def run_readme(bench, text):
    """How many commands were run or looked up."""
    session, section, n = Session(bench), "", 0
    for heading, start, language, lines in blocks(text):
        if heading != section:
            session.end()
            section = heading
        number = start
        try:
            if language == "c":
                check_c(lines)
            elif language != "sh":
                expect(language == "text" and heading in ("Design", "Choosing an algorithm", "What it costs"),
                       f"a block of '{language}': how is it to be run?")
                continue
            else:
                for number, comment, command in commands(start, lines):
                    run_command(session, command, comment)
                    n += 1
                session.finish_workers()
        except Failed as what:
            raise Failed(f"README.md:{number}: {what}") from None
    session.end()
    return n


def test_readme(bench):
    n = run_readme(bench, read("README.md"))
    expect(n > 25, f"only {n} commands were found")


def test_what_is_wrong_is_found(_):
    """Else the test above would show nothing."""
    for text, what in (
            ("    frobnicate --all\n", "no rule knows"),
            ("```js\nlet x;\n```\n", "how is it to be run"),
            ("```c\nint no_such_line;\n```\n", "has no line"),
            ("    dtworker check /nonexistent\n", "ended with 66"),
            ("    dtworker run --modell toy\n", "ended with 64"),
            ("    psctl status\n", "no psd runs"),
            ("    sudo systemctl start psdd\n", "no unit"),
            ("    sudo systemctl start psd@x\n", "not made before"),
            ("    sudo apt install ./build/package/psdd_*.deb\n", "is not built"),
            ("    cmake --preset fast\n", "no preset"),
            ("    tests/run.sh --faster\n", "does not know"),
            ("    cp /etc/psd/other.conf /etc/psd/b.conf\n", "is not installed")):
        part = harness.Bench()
        try:
            run_readme(part, f"# Part\n\n{text}")
        except Failed as said:
            expect(what in str(said), f"{text!r} says '{said}', expected '{what}'")
        else:
            raise Failed(f"nothing is wrong with {text!r}?")
        finally:
            part.close(False)


harness.main(test_readme, test_what_is_wrong_is_found)
