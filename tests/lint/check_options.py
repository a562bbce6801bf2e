"""The option tables against what is written about them: manual pages, sample configuration, library page.

check_options.py SOURCE BIN. The tables come from the programs (`--print-options`, `--help`, `--dump-config`),
the functions from libdtworker.symbols and dtworker.h. In a page every option is one `.It Fl ...`, with a line
`Default: X.` where it has one; in dtworker(1) the heading `Options of train and run` says whose they are."""
import difflib
import os
import re
import subprocess
import sys

ROOT, BIN = sys.argv[1], sys.argv[2]
bad = []


def complain(where, what):
    bad.append(f"{where}: {what}")


def ask(program, *args):
    return subprocess.run([os.path.join(BIN, program), *args], capture_output=True, text=True, check=True,
                          timeout=60).stdout


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


class Row:
    def __init__(self, line):
        (_, self.command, self.name, letter, self.type, self.scope, self.arg, self.default, self.choices,
         self.help) = line.split("|", 9)
        self.letter = letter if letter != "-" else ""
        if not self.default and "(default " in self.help:
            self.default = self.help.split("(default ")[1].rsplit(")", 1)[0]


def table(program):
    """Rows of options, names of commands."""
    lines = ask(program, "--print-options").splitlines()
    return ([Row(line) for line in lines if line.startswith("option|")],
            [line.split("|")[1] for line in lines if line.startswith("command|")])


def items(text, marker):
    """(subsection, line number, what follows .It MARKER, lines of the item) in a page."""
    found, item, heading = [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith((".Sh ", ".Ss ")):
            heading, item = line[4:].strip('"'), None
        elif line.startswith(".It "):
            item = None
            if line.startswith(f".It {marker} "):
                item = (heading, number, line[4 + len(marker) + 1:], [])
                found.append(item)
        elif line == ".El":
            item = None
        elif item:
            item[3].append(line)
    return found


def option_of(text):
    """`h , Fl -help Ar X` -> (letter, name)"""
    match = re.match(r"(?:(\w) , Fl )?-([\w-]+)(?: |$)", text)
    return (match.group(1) or "", match.group(2)) if match else ("", text)


def defaults(lines, commands):
    """`Default: 1 (train), 2 (run).` -> {train: 1, run: 2}"""
    stated = [line[len("Default: "):] for line in lines if line.startswith("Default: ")]
    if not stated:
        return {}
    text = stated[0].removesuffix(".")
    if len(stated) > 1 or not stated[0].endswith("."):
        return {c: f"not one line of the form 'Default: X.': {stated}" for c in commands}
    parts = re.findall(r"(\S+) \(([\w, ]+)\)", text)
    if not parts:
        return {c: text for c in commands}
    return {c: value for value, names in parts for c in names.split(", ")}


def compare(page, number, row, lines, commands):
    where = f"{page}:{number}"
    told = defaults(lines, commands).get(row.command, "")
    expected = row.default if row.type != "flag" else ""
    if told != expected:
        complain(where, f"--{row.name} {row.command}: default is '{expected}', the page says '{told}'")
    text = "\n".join(line for line in lines if not line.startswith("Default: "))
    for choice in [] if ".Sx " in text or "likewise" in text else row.choices.split():
        if not re.search(rf"(?<![\w-]){re.escape(choice)}(?![\w-])", text):
            complain(where, f"--{row.name}: choice {choice} is not mentioned")


def check_page(page, rows):
    """Each row's option stands exactly once, and nothing else does."""
    text, missing = read(page), {(r.command, r.name): r for r in rows}
    known = dict(missing)
    for heading, number, rest, lines in items(text, "Fl"):
        letter, name = option_of(rest)
        commands = re.findall(r"\w+", heading.removeprefix("Options of ").replace(" and ", " ")) \
            if heading.startswith("Options of ") else [""]
        for command in commands:
            row = known.get((command, name))
            if not row:
                complain(f"{page}:{number}", f"there is no option --{name} {command}")
            elif not missing.pop((command, name), None):
                complain(f"{page}:{number}", f"--{name} {command} is there twice")
            else:
                compare(page, number, row, lines, commands)
                if row.letter != letter:
                    complain(f"{page}:{number}", f"--{name}: the letter is '{row.letter}', not '{letter}'")
    for command, name in missing:
        complain(page, f"--{name} {command} is missing")


def check_commands(page, commands):
    written = [rest.split()[0] for heading, _, rest, _ in items(read(page), "Cm") if heading == "Commands"]
    for command in commands:
        if written.count(command) != 1:
            complain(page, f"command {command} is there {written.count(command)} times under Commands")
    for command in set(written) - set(commands):
        complain(page, f"there is no command {command}")


def check_list(page, rows, name, section):
    """The choices of an option that says `See section` are that section's items."""
    written = [rest.split()[0] for heading, _, rest, _ in items(read(page), "Cm") if heading == section]
    for choices in {r.choices for r in rows if r.name == name}:
        if written != choices.split():
            complain(page, f"{section} are {' '.join(written)}, --{name} knows {choices}")


def check_keys(rows):
    page, keys = "man/psd.conf.5", {r.name.replace("-", "_"): r for r in rows if "f" in r.scope}
    missing = dict(keys)
    for _, number, rest, lines in items(read(page), "Cm"):
        key = rest.split()[0]
        row = missing.pop(key, None)
        if not row:
            complain(f"{page}:{number}", f"{key} is there twice" if key in keys else f"there is no key {key}")
            continue
        told = defaults(lines, [""]).get("", "")
        expected = row.default or ("no" if row.type == "flag" else "")
        if told != expected:
            complain(f"{page}:{number}", f"{key}: default is '{expected}', the page says '{told}'")
        if ("r" in row.scope) != ("Reloadable." in lines):
            complain(f"{page}:{number}", f"{key}: 'Reloadable.' must stand there exactly when SIGHUP changes it")
    for key in missing:
        complain(page, f"key {key} is missing")


def check_sample(rows):
    sample, dump = read("deploy/psd.conf"), ask("psd", "--dump-config")
    for line in difflib.unified_diff(dump.splitlines(), sample.splitlines(), "psd --dump-config",
                                     "deploy/psd.conf", lineterm="", n=0):
        bad.append(line)
    for row in rows:
        key = row.name.replace("-", "_")
        if "f" in row.scope and len(re.findall(rf"^#{key} =", sample, re.M)) != 1:
            complain("deploy/psd.conf", f"key {key} is not there exactly once, as a comment")


def check_help(program, rows, command=""):
    """The help has a line for each option, and no other option."""
    text = ask(program, *([command] if command else []), "--help")
    told = re.findall(r"^ {2}(?:-\w, | {4})--([\w-]+)", text, re.M)
    names = [r.name for r in rows if r.command == command and "c" in r.scope]
    if told != names:
        complain(f"{program} {command} --help", f"options {sorted(set(told) ^ set(names)) or 'in another order'}")


def prototypes(header):
    """name -> 'type name(arguments)' in one spelling."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    found = re.findall(r"DTW_API\s+([\w\s*]+?)\b(dtw_\w+)\(([^;]*)\);", text)
    return {name: spell(kind, name, args) for kind, name, args in found}


def spell(kind, name, args):
    return re.sub(r"\s+", "", f"{kind} {name}({args})")


def page_prototypes(text):
    found = []
    for kind, name, body in re.findall(r'^\.Ft (.+)\n\.Fo (\w+)\n((?:\.Fa .*\n)*)\.Fc$', text, re.M):
        args = ", ".join(a.strip('"') for a in re.findall(r"^\.Fa (.*)$", body, re.M))
        found.append((name, spell(kind.strip('"'), name, args)))
    return found


def check_library():
    page = "man/libdtworker.3"
    text, header = read(page), read("worker/lib/dtworker.h")
    symbols, declared = read("tests/lint/libdtworker.symbols").split(), prototypes(header)
    written = page_prototypes(text)
    described = [rest.split()[0] for _, _, rest, _ in items(text, "Fn")]
    for name in sorted({*symbols, *declared, *described, *(n for n, _ in written)}):
        if name not in symbols or name not in declared:
            complain(page, f"{name} is no exported function")
        elif [p for n, p in written if n == name] != [declared[name]]:
            complain(page, f"SYNOPSIS does not have the prototype of {name} once, as in dtworker.h")
        elif described.count(name) != 1:
            complain(page, f"{name} is described {described.count(name)} times")
    codes = re.findall(r"^ {4}(DTW_\w+)(?: =|,)", header.split("enum dtw_status {")[1].split("}")[0], re.M)
    told = [rest.split()[0] for heading, _, rest, _ in items(text, "Dv") if heading == "RETURN VALUES"]
    if told != codes:
        complain(page, f"RETURN VALUES are not those of enum dtw_status: {sorted(set(told) ^ set(codes))}")
    for field in re.findall(r"(\w+);", re.sub(r"/\*.*?\*/", "", header, flags=re.S).split("struct dtw_options {")[1]
                            .split("}")[0]):
        if field != "size" and not re.search(rf"^\.It Fa .*\b{field}\b", text, re.M):
            complain(page, f"field {field} of struct dtw_options is missing")
    example = text.split(".Bd -literal\n")[1].split("\n.Ed")[0].replace("\\e", "\\").replace("\\&", "")
    source = read("worker/examples/minimal.c").split("\n", 1)[1].strip()
    if example.strip() != source:
        complain(page, "its example is not worker/examples/minimal.c")


def check_readme(rows):
    """An option that the text names exists; those of code blocks are run by tests/system/test_readme.py."""
    known = {r.name for r in rows} | {"install"}  # cmake
    for number, line in enumerate(read("README.md").split("\n## Design")[0].splitlines(), 1):
        for code in re.findall(r"`([^`]+)`", line):
            for name in re.findall(r"(?:^| )--([\w-]+)", code):
                if name not in known:
                    complain(f"README.md:{number}", f"there is no option --{name}")


def check_rates():
    """README has the rows of `dtworker train --help` as they are."""
    said = subprocess.run([os.path.join(BIN, "dtworker"), "train", "--help"], capture_output=True, text=True, check=True).stdout
    rows = said.split("\nAlgorithms, and their own ")[1].split("\n\n")[0].splitlines()[1:]
    lines = read("README.md").splitlines()
    for row in rows:
        if row not in lines:
            complain("README.md", f"Choosing an algorithm: the table of rates lacks the line '{row}' of dtworker train --help")


def main():
    psd, _ = table("psd")
    dtworker, commands = table("dtworker")
    psctl, verbs = table("psctl")
    check_page("man/psd.8", [r for r in psd if "c" in r.scope])
    check_keys(psd)
    check_sample(psd)
    check_page("man/dtworker.1", dtworker)
    check_commands("man/dtworker.1", commands)
    check_list("man/dtworker.1", dtworker, "algorithm", "Algorithms")
    check_list("man/dtworker.1", dtworker, "model", "Models")
    check_page("man/psctl.1", psctl)
    check_commands("man/psctl.1", verbs)
    check_help("psd", psd)
    check_help("psctl", psctl)
    for command in commands:
        check_help("dtworker", dtworker, command)
    check_library()
    check_rates()
    check_readme(psd + dtworker + psctl)
    print("\n".join(bad) if bad else f"{len(psd) + len(dtworker) + len(psctl)} options")
    return 1 if bad else 0


sys.exit(main())
