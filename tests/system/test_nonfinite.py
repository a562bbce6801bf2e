"""A finite gradient that is too large for the rule: psd says whose it was, once a variable, and psctl status shows it."""
import struct

import harness
import protocol
from harness import expect

SLICE = 262144
ADAM = ["w", "f32", [2 * SLICE], "adam", {"lr": 0.1}, "zeros", 1, 0]
BESIDE = ["beside", "f32", [4], "adam", {"lr": 0.1}, "zeros", 1, 0]
DECLARED = [ADAM, BESIDE]


def call(raw, *args):
    reply = raw.call(*args)
    expect(reply and reply.status == protocol.OK, f"{args[0]} is answered with {reply}")
    return reply


def start(bench, psd):
    """The variables of a job on one shard, where a connection of one's own serves."""
    raw = bench.raw(psd)
    expect(raw.hello(workers=1).status == protocol.OK, "hello")
    ids = [entry[1] for entry in raw.declare(DECLARED).body()]
    raw.init_done(DECLARED, False)
    call(raw, protocol.INIT, [[[ids[0], 0], [ids[0], 1], [ids[1], 0]]], [bytes(4 * SLICE)] * 2 + [bytes(16)])
    raw.init_done(DECLARED, True)
    call(raw, protocol.JOIN, [0])
    return raw, ids


def push(raw, ids, step, large):
    large = struct.pack("<f", large) * SLICE
    items = [[ids[0], 0, step], [ids[0], 1, step], [ids[1], 0, step]]
    call(raw, protocol.PUSH, [step + 1, 1, 1, items], [large, large, struct.pack("<4f", 1, 2, 3, 4)])


def log_lines(psd):
    return [line for line in psd.err().splitlines() if "NaN or Inf" in line]


def test_adam(bench):
    psd = bench.psd(shards=1)
    raw, ids = start(bench, psd)
    push(raw, ids, 0, 1e15)
    expect(psd.job()["nonfinite"] == [], f"its square is 1e30: {psd.job()}")
    for step in (1, 2, 3):
        push(raw, ids, step, -1e30)
    harness.wait_until(lambda: psd.job()["nonfinite"], "psd finds it")
    found = psd.job()["nonfinite"]
    expect(len(found) == 1, f"once for both slices, and not of the other variable: {found}")
    told = found[0]
    expect(abs(told.pop("largest") / 1e30 - 1) < 1e-6, f"{found}")
    expect(told == {"variable": "w", "slot": "v", "rank": 0, "step": 1}, f"{told}")
    done = psd.psctl("status")
    text = "w: NaN or Inf in its slot v, found at step 1 after a gradient of up to 1e+30 from rank 0"
    expect(done.returncode == 0 and f"  {text}\n" in done.stdout, done.stdout + done.stderr)
    lines = log_lines(psd)
    expect(len(lines) == 1 and f"job j: variable {text}: " in lines[0], f"one line: {lines}")
    psd.stop()


harness.main(test_adam)
