"""A push that is sent once more is counted as a duplicate, once an item and time, and changes nothing."""
import struct

import harness
import protocol
from harness import expect

DECLARED = [["w", "f32", [4], "sgd", {"lr": 0.5}, "zeros", 1, 0]]
DUPLICATE = 4
GRADIENT = struct.pack("<4f", 1, 2, 3, 4)


def call(raw, *args):
    reply = raw.call(*args)
    expect(reply and reply.status == protocol.OK, f"{args[0]} is answered with {reply}")
    return reply


def counters(psd):
    return {name: psd.job()["counters"].get(name, 0) for name in ("accumulated", "duplicate", "applied")}


def test_count(bench):
    psd = bench.psd(shards=1)
    raw = bench.raw(psd)
    expect(raw.hello(consistency="async").status == protocol.OK, "hello")
    variable = raw.declare(DECLARED).body()[0][1]
    raw.init_done(DECLARED, False)
    call(raw, protocol.INIT, [[[variable, 0]]], [bytes(16)])
    raw.init_done(DECLARED, True)
    call(raw, protocol.JOIN, [0])
    push = [1, 1, 1, [[variable, 0, 0]]]
    first = call(raw, protocol.PUSH, push, [GRADIENT])
    before = counters(psd)
    expect(before["duplicate"] == 0 and first.fields[0][0][0] != DUPLICATE, f"{first} {before}")
    for n in (1, 2, 3):
        again = call(raw, protocol.PUSH, push, [GRADIENT])
        expect(again.fields == first.fields, f"it is answered as it was: {again}, not {first}")
        expect(counters(psd) == {**before, "duplicate": n}, f"{counters(psd)}")
    call(raw, protocol.PUSH, [2, 1, 1, [[variable, 0, 1]]], [GRADIENT])
    expect(counters(psd)["duplicate"] == 3, "the next push is none")
    late = call(raw, protocol.PUSH, push, [GRADIENT])
    expect(late.fields[0][0][0] == DUPLICATE and counters(psd)["duplicate"] == 4, f"one before the last: {late}")
    psd.stop()


harness.main(test_count)
