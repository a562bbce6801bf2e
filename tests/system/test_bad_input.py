"""Wrong options, keys, files and data: one clear line, the right exit code, nothing left behind.

Row                           here                      and, in depth, where it is nearer
unknown flag or key           test_unknown_*            unit_base option, near; unit_daemon config
missing or unreadable file    test_missing_*            unit_train idx, npy, model_file; unit_daemon config
empty or truncated IDX        test_idx                  unit_train idx every_cut_* (each offset, plain and gzip)
gzip under a plain name       test_names_do_not_matter  unit_train idx plain_and_gzip_under_either_name, csv
text, ragged, quoted newline  test_csv                  unit_train csv bad_input_is_told_in_one_line, every_cut
label out of range, NaN       test_labels, test_nan     unit_train csv, npy, dataset, softmax
German locale                 test_german               unit_base parse, unit_train csv
shapes past 2^31, 2^32, 2^63  test_shapes               unit_train idx shapes_*, npy headers_*, model_file every_lie_*
port in use, no such host, dead ps task, full disk, descriptors: test_bad_surroundings.py
"""
import json
import os
import shutil
import stat
import struct
import subprocess

import harness
from harness import Skipped, expect
from refused import idx, idx_folder, images, labels, npy, pack, refused, safetensors, write

USAGE, DATA, NO_INPUT, CONFIG = 64, 65, 66, 78
LOCAL = ("--algorithm", "local", "--steps", 2, "--batch", 2)


def check(bench, code, path, *words, **more):
    """Told by `check`, and by `train` as well."""
    refused(bench, code, ["dtworker", "check", path], *words, **more)
    refused(bench, code, ["dtworker", "train", *LOCAL, "--model", "softmax", "--data", path, "--save",
                          os.path.join(bench.dir, "never.safetensors")], *words, **more)


def test_unknown_option(bench):
    for argv, near in ((["psd", "--lisen", "tcp://127.0.0.1:0"], "--listen"), (["psctl", "--jsno", "status"], "--json"),
                       (["dtworker", "train", "--worker", "2"], "--workers"), (["dtworker", "run", "--ps-task=2"], "--ps-tasks"),
                       (["dtworker", "eval", "--model-fiel", "w"], "--model-file"), (["dtworker", "check", "--lable", "1"], "--label")):
        option = next(word for word in argv if word.startswith("--")).split("=")[0]
        refused(bench, USAGE, argv, f"{option}: unknown option; did you mean {near}?")
    for name in ("psd", "psctl"):
        refused(bench, USAGE, [name, "--xyzzyxyzzy"], "--xyzzyxyzzy: unknown option; see --help")


def test_unknown_command(bench):
    refused(bench, USAGE, ["dtworker", "trian"], "no command trian; did you mean train?")
    refused(bench, USAGE, ["psctl", "stauts"], "unknown command stauts; did you mean status?")
    refused(bench, USAGE, ["dtworker", "xyzzy"], "no command xyzzy")
    refused(bench, USAGE, ["psctl"], "no command")
    refused(bench, USAGE, ["psd", "start"], "start: unexpected argument")


def test_unknown_value(bench):
    refused(bench, USAGE, ["dtworker", "train", "--model", "toy", "--algorithm", "ssdg"], "ssdg", "ssgd")
    refused(bench, USAGE, ["dtworker", "train", *LOCAL, "--model", "sofmax", "--data", harness.digits()], "sofmax", "softmax")
    refused(bench, USAGE, ["dtworker", "train", "--model", "toy", "--job", "j", "--ps", "tcp://127.0.0.1:9,tcp://127.0.0.1:9"],
            "--ps names tcp://127.0.0.1:9 twice")
    refused(bench, USAGE, ["psd", "-o", "shards=two"], "shards: 'two' must be a whole number")


def test_unknown_key(bench):
    for text, line, words in (("[psd]\n# comment\nshrads = 2\n", 3, ("unknown key shrads; did you mean shards?",)),
                              ("[psd]\nshards = two\n", 2, ("shards", "'two'", "whole number")),
                              ("[psd]\nlog_level = inof\n", 2, ("log_level", "'inof'", "info")),
                              ("[spd]\nshards = 2\n", 1, ("unknown section [spd]", "[psd]")),
                              ("[psd]\nshards 2\n", 2, ("key = value",)),
                              ("[psd]\nshards = 2\nshards = 3\n", 3, ("shards is set twice",))):
        path = write(bench, "psd.conf", text)
        refused(bench, CONFIG, ["psd", "-f", path], f"{path}:{line}: ", *words)
    refused(bench, USAGE, ["psd", "-o", "shrads=2"], "unknown key shrads; did you mean shards?")


def test_missing_file(bench):
    none, folder = os.path.join(bench.dir, "none"), os.path.join(bench.dir, "folder")
    os.mkdir(folder)
    for path in (none, none + ".csv", none + ".npy", none + ".gz"):
        check(bench, NO_INPUT, path, path, "No such file or directory")
    check(bench, NO_INPUT, folder, folder, "holds no training set")
    idx_folder(bench, "half", images(), labels())
    os.unlink(os.path.join(bench.dir, "half", "train-labels-idx1-ubyte"))
    check(bench, NO_INPUT, os.path.join(bench.dir, "half"), "train-labels-idx1-ubyte")
    evaluate = ["dtworker", "eval", "--data", harness.digits(), "--model-file"]
    refused(bench, NO_INPUT, [*evaluate, none], none, "No such file or directory")
    refused(bench, NO_INPUT, [*evaluate, folder], folder, "not a regular file")
    refused(bench, CONFIG, ["psd", "-f", none], none, "No such file or directory")
    refused(bench, CONFIG, ["psd", "-f", folder], folder, "Is a directory")


def as_nobody(bench):
    """What to put in front of a command: root reads everything."""
    if os.geteuid() != 0:
        return []
    if not shutil.which("setpriv"):
        raise Skipped("root reads everything, and there is no setpriv")
    os.chmod(bench.dir, 0o755)
    argv = [shutil.which("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*argv, harness.program("dtworker"), "--version"], capture_output=True, check=False,
                      timeout=harness.LONG).returncode != 0:
        raise Skipped("root reads everything, and nobody else may run the programs of this build")
    return argv


def test_unreadable_file(bench):
    first = as_nobody(bench)
    secret = {name: write(bench, name, content) for name, content in
              (("secret.csv", "1,0\n2,1\n"), ("psd.conf", "[psd]\n"), ("w.safetensors", safetensors("{}", b"")))}
    data = write(bench, "open.csv", "1,0\n2,1\n")
    for path in secret.values():
        os.chmod(path, 0 if not first else 0o600)
    program = harness.program
    refused(bench, NO_INPUT, [*first, program("dtworker"), "check", secret["secret.csv"]], secret["secret.csv"], "Permission denied")
    refused(bench, NO_INPUT, [*first, program("dtworker"), "eval", "--data", data, "--model-file", secret["w.safetensors"]],
            secret["w.safetensors"], "Permission denied")
    refused(bench, CONFIG, [*first, program("psd"), "-f", secret["psd.conf"]], secret["psd.conf"], "Permission denied")
    for path in secret.values():
        os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)


def test_idx(bench):
    whole = images()
    for n, word in ((0, "offset 0"), (3, "offset 3"), (15, "offset 15"), (len(whole) - 1, "has 39 bytes, its header claims 40")):
        for suffix, content in (("", whole[:n]), (".gz", pack(whole[:n]))):
            folder = idx_folder(bench, f"cut{n}{suffix}", content, labels() if not suffix else pack(labels()), suffix)
            check(bench, DATA, folder, f"train-images-idx3-ubyte{suffix}", word if not suffix else "ends at offset")
    folder = idx_folder(bench, "counts", whole, labels(3))
    check(bench, DATA, folder, "train-images-idx3-ubyte", "4 images", "3 labels")
    folder = idx_folder(bench, "cut-gzip", pack(whole)[:-5], pack(labels()), ".gz")
    check(bench, DATA, folder, "train-images-idx3-ubyte.gz", "file was cut")


def test_names_do_not_matter(bench):
    """gzip is seen by its first bytes, whatever the name says."""
    texts = []
    for name, suffix, how in (("a", "", bytes), ("b", ".gz", pack), ("c", "", pack), ("d", ".gz", bytes)):
        folder = idx_folder(bench, name, how(images()), how(labels()), suffix)
        process = bench.dtworker("check", folder)
        process.expect_exit(0)
        expect(not process.err(), process.err())
        word = "gzip IDX" if how is pack else "plain IDX"
        expect(process.out().count(word) == 2, f"it says what it is: {process.out()}")
        texts.append(process.out().replace(folder, "DIR").replace(".gz", "").replace(word, "IDX"))
    expect(len(set(texts)) == 1 and "4 rows" in texts[0], f"all four are read alike: {texts}")


def test_csv(bench):
    for name, text, line, words in (
            ("text", "a,b,c\n1,2,0\n1,two,1\n", 3, ("column 2 'b'", "'two'", "no number")),
            ("ragged", "1,2,0\n1,0\n", 2, ("2 columns", "line 1 has 3")),
            ("long", "1,2,0\n1,2,3,0\n", 2, ("4 columns", "line 1 has 3")),
            ("newline", 'a,b\n1,0\n"2\n3",1\n', 3, ("quoted cell in column 1", "does not end on its line")),
            ("empty-cell", "1,2,0\n1,,0\n", 2, ("column 2 is empty",)),
            ("semicolons", "1;2;0\n1;2;0\n", 1, ("commas",)),
            ("comma", '1,0\n"1,5",1\n', 2, ("column 1", "'1,5'", "no number"))):
        path = write(bench, f"{name}.csv", text)
        check(bench, DATA, path, f"{path}:{line}: ", *words)
    check(bench, DATA, write(bench, "empty.csv", ""), "empty.csv: ", "is empty")
    check(bench, DATA, write(bench, "header.csv", "a,b\n"), "header.csv: ", "no rows")


def test_labels(bench):
    for name, cell, word in (("above", "65536", "above 65535"), ("below", "-1", "negative"), ("half", "1.5", "not a whole number")):
        path = write(bench, f"{name}.csv", f"1,0\n1,{cell}\n")
        refused(bench, DATA, ["dtworker", "train", *LOCAL, "--model", "softmax", "--data", path],
                f"{path}:2: ", "column 2", f"'{cell}'", word)
    folder = os.path.join(bench.dir, "npy")
    write(bench, "npy/x_train.npy", npy((2, 1), struct.pack("<2f", 1, 2)))
    write(bench, "npy/y_train.npy", npy((2,), struct.pack("<2q", 0, 65536), "<i8"))
    refused(bench, DATA, ["dtworker", "train", *LOCAL, "--model", "softmax", "--data", folder], "y_train.npy", "65536")
    data, _, _ = saved_model(bench)  # of two classes
    model = os.path.join(bench.dir, "good.safetensors")
    more = write(bench, "more.csv", "1,0\n2,7\n")
    refused(bench, DATA, ["dtworker", "eval", "--data", more, "--model-file", model], f"{more}: ", "labels up to 7", "2 classes")


def test_nan(bench):
    for word in ("nan", "-inf", "1e39"):
        path = write(bench, "nan.csv", f"1,0\n{word},1\n")
        check(bench, DATA, path, f"{path}:2: ", "column 1", f"'{word}'")
    folder = os.path.join(bench.dir, "npy")
    write(bench, "npy/x_train.npy", npy((2, 2), struct.pack("<4f", 1, 2, 3, float("nan"))))
    write(bench, "npy/y_train.npy", npy((2,), struct.pack("<2q", 0, 1), "<i8"))
    check(bench, DATA, folder, "x_train.npy", "row 1, feature 1", "nan", "not finite")
    header = {"__metadata__": {"format": "x"}, "kernel": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    path = write(bench, "w.safetensors", safetensors(json.dumps(header), struct.pack("<f", 1)))
    refused(bench, DATA, ["dtworker", "eval", "--data", harness.digits(), "--model-file", path], path)


def saved_model(bench):
    """A good model file of the data `two.csv`: its path, header and bytes of data."""
    data = write(bench, "two.csv", "1,0\n2,1\n3,0\n4,1\n")
    path = os.path.join(bench.dir, "good.safetensors")
    bench.dtworker("train", *LOCAL, "--model", "softmax", "--data", data, "--save", path).expect_exit(0)
    with open(path, "rb") as f:
        content = f.read()
    n = struct.unpack("<Q", content[:8])[0]
    return data, json.loads(content[8:8 + n]), content[8 + n:]


def test_model_file(bench):
    """NaN in it, cut, and of another shape than the data."""
    data, header, values = saved_model(bench)
    argv = ["dtworker", "eval", "--data", data, "--model-file"]
    bad = write(bench, "nan.safetensors", safetensors(json.dumps(header), struct.pack("<f", float("nan")) + values[4:]))
    refused(bench, DATA, [*argv, bad], f"{bad}: tensor ", "holds nan at element 0", "not finite")
    cut = write(bench, "cut.safetensors", safetensors(json.dumps(header), values[:-1]))
    refused(bench, DATA, [*argv, cut], cut)
    good = os.path.join(bench.dir, "good.safetensors")
    refused(bench, DATA, ["dtworker", "eval", "--data", harness.digits(), "--model-file", good], f"{harness.digits()}: ", "features")


def test_shapes(bench):
    for name, dims, word in (("2-31", (4, 46341, 46341), "header claims 8589953140"), ("2-32", (65536, 65537, 2), "header claims"),
                             ("2-63", (2097152, 2097152, 2097152), "more than 2^40"),
                             ("2-64", (4194304, 2097152, 2097152), "more than 2^40")):
        check(bench, DATA, idx_folder(bench, f"idx{name}", idx(dims, range(24)), labels()), "train-images-idx3-ubyte", word)
    for name, dims, word in (("2-31", (46341, 46341), "header claims"), ("2-32", (65536, 65537), "header claims"),
                             ("2-63", (4294967296, 2147483649), "more than 2^48"), ("2-64", (4294967296, 4294967297), "more than 2^48")):
        write(bench, f"npy{name}/x_train.npy", npy(dims, b"\0" * 16, "|u1"))
        write(bench, f"npy{name}/y_train.npy", npy((2,), struct.pack("<2q", 0, 1), "<i8"))
        check(bench, DATA, os.path.join(bench.dir, f"npy{name}"), "x_train.npy", word)
    data, header, values = saved_model(bench)
    name = next(key for key in header if key != "__metadata__")
    for shape in ([2, 1073741825], [2, 2147483649], [2, 4611686018427387905], [3, 6148914691236517206]):
        header[name]["shape"] = shape
        path = write(bench, "shape.safetensors", safetensors(json.dumps(header), values))
        refused(bench, DATA, ["dtworker", "eval", "--data", data, "--model-file", path], path, name)


def german(bench):
    """Environment of a German locale: the machine's, or one that is made."""
    have = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False, timeout=harness.LONG).stdout
    for name in have.split():
        if name.lower() in ("de_de.utf8", "de_de.utf-8", "de_de"):
            return {"LC_ALL": name}
    folder = os.path.join(bench.dir, "locale")
    os.mkdir(folder)
    made = subprocess.run(["localedef", "-c", "-i", "de_DE", "-f", "UTF-8", os.path.join(folder, "de_DE.UTF-8")],
                          capture_output=True, check=False, timeout=harness.LONG) if shutil.which("localedef") else None
    if not made or not os.path.exists(os.path.join(folder, "de_DE.UTF-8", "LC_NUMERIC")):
        raise Skipped("no German locale, and localedef makes none")
    return {"LC_ALL": "de_DE.UTF-8", "LOCPATH": folder}


def expect_german(env):
    done = subprocess.run(["/usr/bin/python3", "-c", "import locale; locale.setlocale(locale.LC_ALL, ''); "
                           "print(locale.localeconv()['decimal_point'])"], capture_output=True, text=True, check=False,
                          timeout=harness.LONG, env={**os.environ, **env})
    expect(done.stdout.strip() == ",", f"the locale has a decimal comma: {done.stdout}{done.stderr}")


def test_german(bench):
    env = german(bench)
    expect_german(env)
    data = write(bench, "data.csv", "1.5,0\n2.25,1\n-3.5,0\n4.125,1\n")
    save = os.path.join(bench.dir, "w.safetensors")
    outputs = []
    for e in ({}, env):
        process = bench.dtworker("train", *LOCAL, "--model", "softmax", "--data", data, "--lr", "0.25", "--json", "--save", save, env=e)
        process.expect_exit(0)
        with open(save, "rb") as f:
            outputs.append((process.json()["train_loss"], f.read()))
    expect(outputs[0] == outputs[1], "the locale changes nothing")
    refused(bench, USAGE, ["dtworker", "train", *LOCAL, "--model", "softmax", "--data", data, "--lr", "0,25"], "--lr", "'0,25'", env=env)
    path = write(bench, "comma.csv", '1,0\n"1,5",1\n')
    check(bench, DATA, path, f"{path}:2: ", "column 1", "'1,5'", env=env)
    path = write(bench, "psd.conf", "[psd]\nstop_timeout = 1,5s\n")
    refused(bench, CONFIG, ["psd", "-f", path], f"{path}:2: ", "'1,5s'", env=env)


def test_run_looks_before_it_starts(bench):
    """One line for all, and neither psd nor workers before it."""
    none = os.path.join(bench.dir, "none")
    words = os.path.join(bench.dir, "words.csv")
    with open(words, "w", encoding="utf-8") as f:
        f.write("a,label\n1,0\nx,1\n")
    for data, code, said in ((none, 66, none), (words, 65, f"{words}:3")):
        run = bench.dtworker("run", "--workers", 3, "--data", data)
        run.expect_exit(code)
        lines = run.err().splitlines()
        expect(len(lines) == 1 and said in lines[0], f"one line with {said}: {lines}")
        expect("private cluster" not in run.out(), run.out())


harness.main(test_run_looks_before_it_starts, test_unknown_option, test_unknown_command, test_unknown_value, test_unknown_key, test_missing_file,
             test_unreadable_file, test_idx, test_names_do_not_matter, test_csv, test_labels, test_nan, test_model_file,
             test_shapes, test_german)
