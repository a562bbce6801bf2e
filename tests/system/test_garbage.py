"""Bytes that no client would send, at a psd that serves a job: it lives, its memory stays bounded, and
the worker that trains meanwhile ends as if nothing had been."""
import os
import random
import socket
import struct

import msgpack

import harness
import protocol
from harness import expect

GREETING = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL" + b"\0" * 16 + b"\0" + b"\0" * 31  # ZMTP 3.0, as client
READY = b"\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06DEALER"
HELLO = [1, 1, 1, 0, bytes(16), 0, 0, "garbage", False, 0, 0, "tcp://x:1", "h", 7, []]
PUSH = [1, 16, 9, 5, 3, 100, 1, [[0, 0, 4], [1, 0, 4]]]


def rss(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def send_raw(psd, data, half_close=False):
    host, port = psd.endpoint[len("tcp://"):].rsplit(":", 1)
    with socket.create_connection((host, int(port)), 5) as s:
        s.settimeout(0.02)
        try:
            s.sendall(data)
            if half_close:
                s.shutdown(socket.SHUT_WR)
            s.recv(4096)
        except OSError:
            pass


def expect_handshake(psd):
    """What is sent behind READY is worth nothing unless psd takes both as a client's."""
    host, port = psd.endpoint[len("tcp://"):].rsplit(":", 1)
    with socket.create_connection((host, int(port)), 5) as s:
        s.sendall(GREETING + READY)
        answer = b""
        while b"READY" not in answer[64:]:
            part = s.recv(4096)
            expect(part, f"the handshake was refused after {answer}")
            answer += part
        s.settimeout(0.5)
        try:
            expect(s.recv(1) != b"", "the connection stays open after READY")
        except TimeoutError:
            pass


def throw_raw(psd, rng):
    expect_handshake(psd)
    send_raw(psd, b"")
    send_raw(psd, b"GET / HTTP/1.1\r\nHost: psd\r\n\r\n", True)
    send_raw(psd, b"POST / HTTP/1.0\r\nContent-Length: 99999999999\r\n\r\n" + b"A" * 100000)
    for n in range(0, len(GREETING), 7):
        send_raw(psd, GREETING[:n], n % 2 == 0)
    for n in range(0, len(READY) + 1, 5):
        send_raw(psd, GREETING + READY[:n], n % 2 == 1)
    send_raw(psd, GREETING + b"\x06" + b"\xff" * 8)  # a command of 2^64 - 1 bytes
    send_raw(psd, GREETING + READY + b"\x02" + struct.pack(">Q", 2**62))  # a frame of as many
    send_raw(psd, GREETING + READY + b"\x03" + struct.pack(">Q", 2**32 + 5) + b"x" * 1000)
    for _ in range(20):
        send_raw(psd, rng.randbytes(rng.randrange(1, 3000)), rng.random() < 0.5)
    for _ in range(10):
        send_raw(psd, GREETING + READY + rng.randbytes(rng.randrange(1, 3000)))


def variants(message, rng):
    """The header cut at every byte, with a byte changed, with other types and absurd counts in its place."""
    packed = msgpack.packb(message)
    for n in range(len(packed)):
        yield packed[:n]
    for i in range(len(packed)):
        for byte in (0x00, 0x80, 0x90, 0xc0, 0xc1, 0xc4, 0xc6, 0xcb, 0xcf, 0xd3, 0xdb, 0xdd, 0xdf, 0xff):
            yield packed[:i] + bytes([byte]) + packed[i + 1:]
    others = [None, True, -1, 2**64 - 1, -2**63, 1.5, float("nan"), "", "x" * 300, b"", b"\0" * 300, [], [[]], {}, {1: 2},
              [0] * 70, msgpack.ExtType(1, b"x" * 4)]
    for i in range(len(message)):
        for other in others:
            yield msgpack.packb(message[:i] + [other] + message[i + 1:])
    for tag in (b"\xdd", b"\xdf", b"\xdb", b"\xc6", b"\xc9"):  # array, map, str, bin, ext of 2^32 - 1
        yield tag + b"\xff" * 4
        yield tag + b"\xff" * 4 + packed
        yield b"\x98\x01\x10\x09\x05\x03\x64\x01" + tag + b"\xff" * 4
    yield b"\x91" * 4000
    yield b"\x98\x01\x10\x09\x05\x03\x64\x01" + b"\x91" * 4000 + b"\xc0"
    yield b"\x81\xa1a" * 1300
    yield msgpack.packb(message + [0] * 500)
    yield packed + bytes(5000)
    for _ in range(200):
        yield rng.randbytes(rng.randrange(0, 200))


def settle(raw, job):
    """Wait until psd has answered; say HELLO again where a session was and is no more."""
    reply = raw.call(protocol.HEARTBEAT)
    expect(reply, "psd answers a HEARTBEAT among the garbage")
    if job and reply.status != protocol.OK:
        reply = raw.hello(job, workers=3)
        expect(reply and reply.status == protocol.OK, f"HELLO: {reply}")


def throw_messages(bench, psd, rng, job):
    raw = bench.raw(psd)
    settle(raw, job)
    for message in (HELLO, PUSH, [1, 5, 2, 0], [1, 17, 3, 5, [[0, 0, None, 2**64 - 1]]], [1, 7, 4, 0, True, 2, 2**64 - 1]):
        for n, header in enumerate(variants(message, rng)):
            raw.send_frames([header])
            if n % 16 == 0:
                settle(raw, job)
                message[3] = raw.session if message is not HELLO else 0
    for op in range(256):
        raw.send(op)
        for n in (1, 2, 64, 65, 300):
            raw.send(op, [3, 1, 1, [[0, 0, 0]]], [b"abc"] * n)
        settle(raw, job)
    raw.send(protocol.DECLARE, [], [b"\xdd\xff\xff\xff\xff"])
    raw.send(protocol.DECLARE, [], [b"\xdc\x0f\xff" + b"\x98" * 4095])
    shape = [2**40, 2**40, 2**40]
    raw.send(protocol.DECLARE, [], [msgpack.packb([["v", "f32", shape, "sgd", {"lr": 1.0}, "zeros", 0, 0]])])
    raw.send(protocol.DECLARE, [], [msgpack.packb([["v", "f32", [2**39], "sgd", {"lr": 1.0}, "zeros", 0, 0]])])
    raw.send(protocol.HEARTBEAT, [], [b"x" * (1 << 20)] * 3)
    while raw.receive(0.5):
        pass


def test_garbage(bench):
    rng = random.Random(20)
    psd = bench.psd(shards=2, max_session_bytes=65536, memory_quota="256MiB", log_level="warning")
    worker = bench.train(psd, 0, 1, "--steps", 2000, "--step-delay", 5, "--json")
    other = bench.raw(psd)
    expect(other.hello("other").status == protocol.OK, "a HELLO before")
    before = rss(psd.pid)
    throw_raw(psd, rng)
    throw_messages(bench, psd, rng, None)
    throw_messages(bench, psd, rng, "with-session")
    expect(psd.is_alive(), "psd lives")
    grown = rss(psd.pid) - before
    expect(grown < 300 << 20, f"psd grew by {grown >> 20} MiB")
    fresh = bench.raw(psd)
    reply = fresh.hello("other2")
    expect(reply and reply.status == protocol.OK, f"HELLO after it: {reply}")
    expect(psd.job("j")["state"] in ("open", "complete"), "the other job is well")
    worker.expect_exit(0)
    expect(worker.json()["steps"] == 2000, "the worker took all its steps")
    psd.stop()


harness.main(test_garbage)
