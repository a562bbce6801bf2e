"""CSV files by the command line: --header and --label in train, run, eval and check, quotes, a German locale; the
reports of a model for numbers; and that an output that cannot be, or a training that does not begin, leaves nothing."""
import json
import os
import subprocess

import harness
from harness import expect

ROWS = 60


def write(bench, name, header=None, label_first=False):
    """y = 2 a - b + 1; the cells of each third row are quoted."""
    path = os.path.join(bench.dir, name)
    with open(path, "w", encoding="ascii") as f:
        if header:
            f.write(header + "\n")
        for i in range(ROWS):
            a, b = (i % 7) / 4, (i % 5) / 2
            cells = [2 * a - b + 1, a, b] if label_first else [a, b, 2 * a - b + 1]
            f.write(",".join(f'"{c}"' if i % 3 == 0 else f"{c}" for c in cells) + "\n")
    return path


def check(bench, path, *args, code=0, env=None):
    process = bench.start("check", [harness.program("dtworker"), "check", path, *args], env=env)
    process.expect_exit(code)
    return process


def test_header(bench):
    named = write(bench, "named.csv", '"a","b","price"')
    bare = write(bench, "bare.csv")
    expect(f"{ROWS} rows" in check(bench, named).out() and "with header" in check(bench, named).out(), "found by itself")
    expect("without header" in check(bench, bare).out(), "found by itself")
    expect("'price'" in check(bench, named, "--header", "yes").out(), check(bench, named, "--header", "yes").out())
    expect(f"{ROWS - 1} rows" in check(bench, bare, "--header", "yes").out(), "line 1 is taken for names")
    refused = check(bench, named, "--header", "no", code=65)
    expect(":1: " in refused.err() and len(refused.err().splitlines()) == 1, f"line 1 is no row: {refused.err()}")
    numbers = write(bench, "numbers.csv", "1,2,3")
    expect(f"{ROWS + 1} rows" in check(bench, numbers).out(), "numbers are no names by themselves")
    expect(f"{ROWS} rows" in check(bench, numbers, "--header", "yes").out(), "but when it is said")


def test_label(bench):
    first = write(bench, "first.csv", "price,a,b", label_first=True)
    expect("label column 1 'price'" in check(bench, first, "--label", "price").out(), "by name")
    expect("label column 1" in check(bench, first, "--label", "1").out(), "by number")
    expect("label column 3 'b'" in check(bench, first).out(), "the last one by itself")
    check(bench, first, "--label", "none", code=65)
    expect("label column" in check(bench, harness.digits(), "--label", "1", code=64).err(), "IDX has no columns")
    check(bench, harness.digits(), "--header", "yes", code=64)


def test_german(bench):
    names = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False, timeout=harness.LONG).stdout
    german = [name for name in names.split() if name.lower() in ("de_de.utf8", "de_de.utf-8", "de_de")]
    if not german:
        print("no German locale here: skipped (unit_train makes one)")
        return
    path = write(bench, "german.csv")
    env = {"LC_ALL": german[0]}
    expect(check(bench, path).out() == check(bench, path, env=env).out(), "the locale changes nothing")


def test_a_model_for_numbers(bench):
    """--label and --header go through run to its workers, and eval has them as well."""
    data = os.path.join(bench.dir, "data")
    os.mkdir(data)
    for name in ("train.csv", "test.csv"):
        write(bench, os.path.join("data", name), "1,2,3", label_first=True)
    args = ("--data", data, "--label", "1", "--header", "yes")
    path = os.path.join(bench.dir, "w.safetensors")
    train = ("--workers", 2, "--model", "linear", "--lr", "0.2", "--steps", 400, "--batch", 10, *args)
    text = bench.dtworker("run", *train, "--save", path)
    text.expect_exit(0)
    result = bench.dtworker("run", *train, "--json")
    result.expect_exit(0)
    expect(result.json()["test_accuracy"] is None and result.json()["test_loss"] < 1e-3, f"{result.json()}")
    expect(result.json()["rows"] == ROWS, f"{result.json()}")
    expect("test loss " in text.out() and "accuracy" not in text.out(), text.out())
    evaluated = bench.dtworker("eval", "--model-file", path, *args)
    evaluated.expect_exit(0)
    expect("test loss " in evaluated.out() and "train loss " in evaluated.out() and f"({ROWS} rows)" in evaluated.out()
           and "accuracy" not in evaluated.out(), evaluated.out())


def test_outputs(bench):
    metrics, save = (os.path.join(bench.dir, name) for name in ("m.jsonl", "w.safetensors"))
    toy = ("train", "--model", "toy", "--steps", 3)
    same = bench.dtworker(*toy, "--algorithm", "local", "--save", save, "--metrics", os.path.join(bench.dir, ".", "w.safetensors"))
    same.expect_exit(64)
    expect("--save" in same.err() and "--metrics" in same.err(), same.err())
    nobody = ("--ps", f"ipc://{bench.dir}/nobody", "--job", "j", "--retry-for", "200ms")
    bench.dtworker(*toy, *nobody, "--metrics", metrics).expect_exit(69)
    bench.dtworker(*toy, "--algorithm", "local", "--save", os.path.join(bench.dir, "none", "w"), "--metrics",
                   metrics).expect_exit(73)
    expect(not os.path.exists(metrics) and not os.path.exists(save), f"nothing is left: {os.listdir(bench.dir)}")
    with open(metrics, "w", encoding="ascii") as f:
        f.write("older\n")
    bench.dtworker(*toy, *nobody, "--metrics", metrics).expect_exit(69)
    with open(metrics, encoding="ascii") as f:
        expect(f.read() == "older\n", "a training that did not begin leaves it as it was")
    bench.dtworker(*toy, "--algorithm", "local", "--metrics", metrics).expect_exit(0)
    with open(metrics, encoding="ascii") as f:
        expect([json.loads(line)["step"] for line in f][-1] == 3, "the next one replaces it")


harness.main(test_header, test_label, test_german, test_a_model_for_numbers, test_outputs)
