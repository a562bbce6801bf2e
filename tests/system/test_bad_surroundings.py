"""Addresses, disks and limits that are not as they should be: one clear line, the right exit code, nothing lost.

Row                                here                    and, in depth, where it is nearer
port in use                        test_port_in_use        unit_net bind
name that does not resolve         test_no_such_host       unit_lib options endpoints_that_do_not_resolve
ps list with a dead member         test_dead_member        test_outage.py
full or read-only disk at --save   test_disk_*             unit_train model_file a_failed_write_keeps_the_old_file,
                                                           places_that_cannot_be_written; unit_cli metrics
descriptor limit reached           test_limit_*            test_descriptors.py (while psd runs), unit_base descriptors,
                                                           unit_daemon accept
Options, files and data: test_bad_input.py
"""
import os
import shutil
import socket

import harness
from harness import Skipped, expect, wait_until
from refused import expect_one_line, in_mount_namespace, refused, write

UNAVAILABLE, CANNOT_CREATE, IO = 69, 73, 74
TOY = ("--model", "toy", "--steps", 2)


def test_port_in_use(bench):
    psd = bench.psd()
    admin = ("--admin", "none")
    refused(bench, UNAVAILABLE, ["psd", "--listen", psd.endpoint, *admin], psd.endpoint, "in use")
    path = psd.admin[len("ipc://"):]
    refused(bench, UNAVAILABLE, ["psd", "--listen", psd.admin, *admin], path, f"in use by process {psd.pid}")
    with socket.create_server(("127.0.0.1", 0)) as other:  # another program's
        endpoint = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        refused(bench, UNAVAILABLE, ["psd", "--listen", endpoint, *admin], endpoint, "in use")
        first = other.getsockname()[1] - 1  # it is the second shard's
        refused(bench, UNAVAILABLE, ["psd", "--listen", f"tcp://127.0.0.1:{first}", *admin, "-o", "shards=2", "-o",
                                     "shard_ports=consecutive"], "in use")
    none = f"ipc://{bench.dir}/none/psd"
    refused(bench, CANNOT_CREATE, ["psd", "--listen", none, *admin], f"{bench.dir}/none/psd", "No such file or directory")
    expect(psd.status()["jobs"] == [], "the first one goes on")
    psd.stop()


def test_no_such_host(bench):
    endpoint = "tcp://no-such-host.invalid:2222"
    train = ["dtworker", "train", "--job", "j", "--rank", 0, "--workers", 1, "--algorithm", "ssgd", *TOY, "--ps"]
    psd = bench.psd()
    refused(bench, UNAVAILABLE, [*train, endpoint], "ps task 0", "no-such-host.invalid does not resolve")
    refused(bench, UNAVAILABLE, [*train, f"{psd.endpoint},{endpoint}"], "ps task 1", "no-such-host.invalid does not resolve")
    expect(psd.status()["jobs"] == [], "nothing was opened at the one that is there")
    refused(bench, UNAVAILABLE, ["psd", "--insecure", "--listen", endpoint, "--admin", "none"], "no-such-host.invalid does not resolve")
    for bad in ("nonsense", "tcp://127.0.0.1", "tcp://127.0.0.1:99999", "udp://127.0.0.1:1"):
        refused(bench, 64, [*train, bad], "--ps", bad, "is no endpoint")
        refused(bench, 78, ["psd", "--listen", bad, "--admin", "none"], "listen", bad, "is no endpoint")
        refused(bench, 64, ["psctl", "--admin", bad, "status"], "--admin", bad, "is no endpoint")
    psd.stop()


def test_dead_member(bench):
    """It is named with its address. When it comes and the lease of the first try is over, the same command succeeds."""
    alive, dead = bench.psd(shards=1), f"tcp://127.0.0.1:{harness.free_port()}"
    both = f"{alive.endpoint},{dead}"
    train = ["dtworker", "train", "--ps", both, "--job", "j", "--rank", 0, "--workers", 1, "--algorithm", "ssgd",
             "--model", "toy", "--steps", 20, "--lease", "1s", "--retry-for"]
    refused(bench, UNAVAILABLE, [*train, "1s"], f"ps task 1 at {dead} did not answer for 1 s")
    other = bench.psd(endpoint=dead, shards=1)
    again = bench.dtworker(*train[1:], "60s")
    again.expect_exit(0)
    for psd in (alive, other):
        expect(psd.job()["state"] == "complete", f"{psd.name}: {psd.job()['state']}")
        psd.stop()
    refused(bench, UNAVAILABLE, ["psctl", "--admin", alive.admin, "status"], alive.admin, "is psd running there?")


def train_and_save(folder, *more):
    return ["dtworker", "train", "--algorithm", "local", *TOY, "--save", os.path.join(folder, "w.safetensors"), *more]


def in_small_disk(bench, name, size, script, code, *words):
    """Run the script beside a small disk on bench.dir/disk ($DISK; $DTWORKER, $OUT, $KEPT are there, too)."""
    disk = os.path.join(bench.dir, "disk")
    argv = in_mount_namespace(bench, disk, size)
    env = {"DISK": disk, "DTWORKER": harness.program("dtworker"), "OUT": bench.dir, "KEPT": os.path.join(bench.dir, "kept")}
    process = bench.start(name, [*argv, script], env)
    process.expect_exit(code)
    expect_one_line(process, *words)
    return process


# An older file of the same name, and what must be seen of it afterwards: it is whole, and alone but for the filler.
OLD = 'echo older > "$DISK/w.safetensors"; '
AFTER = 'code=$?; ls -A "$DISK" > "$OUT/ls"; cat "$DISK/w.safetensors" > "$KEPT"; exit $code'
FILL = 'dd if=/dev/zero of="$DISK/filler" bs=4096 2>/dev/null; '


def expect_old_file(bench, *others):
    with open(os.path.join(bench.dir, "kept"), encoding="ascii") as f:
        expect(f.read() == "older\n", "the old file is as it was")
    with open(os.path.join(bench.dir, "ls"), encoding="ascii") as f:
        names = f.read().split()
    expect(names == sorted([*others, "w.safetensors"]), f"nothing is left behind: {names}")


def test_disk_read_only(bench):
    save = '"$DTWORKER" train --algorithm local --model toy --steps 2 --save "$DISK/w.safetensors"; '
    in_small_disk(bench, "read-only", "64k", OLD + 'mount -o remount,ro "$DISK"; ' + save + AFTER, CANNOT_CREATE,
                  "disk/w.safetensors", "Read-only file system")
    expect_old_file(bench)


def test_disk_full(bench):
    """It fills up while the training goes on: the values are lost, the old file is not."""
    save = ('"$DTWORKER" train --algorithm local --model toy --steps 30 --step-delay 100 --save "$DISK/w.safetensors" '
            '--metrics "$OUT/metrics" & pid=$!; while ! [ -s "$OUT/metrics" ]; do sleep 0.05; done; ')
    in_small_disk(bench, "full", "64k", OLD + save + FILL + "wait $pid; " + AFTER, IO, "disk/w.safetensors", "No space left on device")
    expect_old_file(bench, "filler")
    with open(os.path.join(bench.dir, "metrics"), encoding="ascii") as f:
        expect('"step":30' in f.read().replace(" ", ""), "the training itself went to its end")


def limited(n, argv):
    if not shutil.which("prlimit"):
        raise Skipped("no prlimit")
    return [shutil.which("prlimit"), f"--nofile={n}:{n}", harness.program(argv[0]), *argv[1:]]


def is_sanitized():
    """Its run time opens files of its own: it cannot be started with the fewest."""
    with open(harness.program("psd"), "rb") as f:
        return b"__asan_init" in f.read()


def test_limit_at_start(bench):
    few = (5, 7, 8, 9, 10, 12, 14, 16)
    words = "the limit of open files is {}: raise it"
    psd = bench.psd(shards=2)
    for n in few if is_sanitized() else (4, *few):
        said = words.format(n)
        refused(bench, UNAVAILABLE, limited(n, ["psd", "--listen", f"ipc://{bench.dir}/none", "--admin", "none"]), "psd needs", said)
        refused(bench, UNAVAILABLE, limited(n, ["psctl", "--admin", psd.admin, "status"]), said)
        train = ["dtworker", "train", "--ps", psd.endpoint, "--job", "j", "--rank", "0", "--workers", "1", "--algorithm", "ssgd",
                 "--model", "toy", "--steps", "2"]
        refused(bench, UNAVAILABLE, limited(n, train), said)
        refused(bench, UNAVAILABLE, limited(n, ["dtworker", "run", "--model", "toy", "--steps", "2"]), "dtworker run needs", said)
    expect(psd.status()["jobs"] == [], "nobody came")
    psd.stop()


def test_limit_that_is_enough(bench):
    """What psd asks for is more than it takes: a worker trains with the least that it starts with."""
    endpoint = f"ipc://{bench.dir}/psd"
    said = refused(bench, UNAVAILABLE, limited(5, ["psd", "--listen", endpoint, "--admin", "none"]), "psd needs").err()
    least = int(said.split("psd needs ")[1].split()[0]) + 4  # the standard three, and what a sanitizer has open
    psd = bench.start("psd", limited(least, ["psd", "--listen", endpoint, "--admin", "none", "--once"]))
    wait_until(lambda: "listens on" in psd.err(), "psd starts")
    worker = bench.start("worker", limited(32, ["dtworker", "train", "--ps", endpoint, "--job", "j", "--rank", "0", "--workers", "1",
                                                "--algorithm", "ssgd", "--model", "toy", "--steps", "20"]))
    worker.expect_exit(0)
    psd.expect_exit(0)
    expect("no file descriptor" not in psd.err(), psd.err())


harness.main(test_port_in_use, test_no_such_host, test_dead_member, test_disk_read_only, test_disk_full, test_limit_at_start,
             test_limit_that_is_enough)
