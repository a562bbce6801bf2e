"""protocol.py - the wire by hand (psd-protocol(7)), for tests that say what no library would."""
import os
import time

import msgpack
import zmq

HELLO, JOIN, LEAVE, HEARTBEAT, DECLARE, INIT, INIT_DONE, CLOCK = range(1, 9)
STATS, GOODBYE, PUSH, PULL, PUSHPULL, ADMIN_STATUS = 11, 14, 16, 17, 18, 32
REPLY = 128
OK, PARKED, HELLO_REQUIRED, HELLO_FIRST, LEFT, MALFORMED, UNSUPPORTED, VERSION = 0, 1, 16, 17, 18, 19, 20, 21
RANK_TAKEN, MISMATCH, JOB_COMPLETE, JOB_FAILED, NO_JOB, QUOTA, NOT_FINITE = range(22, 29)
NO_VARIABLE, WRONG_SHARD, GOING_DOWN, DENIED, NOT_MEMBER, BAD_VALUE = range(29, 35)
NO_STEP = 2**64 - 1


class Reply:
    def __init__(self, frames):
        head = msgpack.unpackb(frames[0], strict_map_key=False)
        self.version, self.op, self.request, self.session, self.status, self.text, self.step = head[:7]
        self.fields, self.frames = head[7:], frames[1:]

    def body(self):
        return msgpack.unpackb(self.frames[0])

    def __repr__(self):
        return f"<reply op {self.op} request {self.request} status {self.status} {self.text!r} {self.fields}>"


def packed(declarations):
    pack = msgpack.Packer(use_single_float=True).pack
    return [pack(d) for d in declarations]


def fingerprint(declarations):
    mark = 0xcbf29ce484222325
    for byte in b"".join(packed(declarations)):
        mark = (mark ^ byte) * 0x100000001b3 % 2**64
    return mark


class Raw:
    """One DEALER; nothing is done by itself."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.connect(endpoint)
        self.session, self.uuid, self.request = 0, os.urandom(16), 0
        self.incarnation = self.life = 0

    def close(self):
        self.socket.close()
        self.context.term()

    def send_frames(self, frames):
        self.socket.send_multipart(frames)

    def send(self, op, fields=(), frames=(), session=None):
        self.request += 1
        session = self.session if session is None else session
        self.send_frames([msgpack.packb([1, op, self.request, session, *fields]), *frames])
        return self.request

    def receive(self, timeout=60.0):
        """The next reply, or None."""
        if not self.socket.poll(int(timeout * 1000)):
            return None
        return Reply(self.socket.recv_multipart())

    def receive_for(self, request, timeout=60.0, parked=False):
        """The final reply to a request (or the PARKED one)."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            reply = self.receive(max(0, end - time.monotonic()))
            if reply and reply.request == request and (reply.status == PARKED) == parked:
                return reply
        return None

    def call(self, op, fields=(), frames=(), timeout=60.0):
        return self.receive_for(self.send(op, fields, frames), timeout)

    def hello(self, job="j", rank=0, task=0, fresh=False, **params):
        fields = [self.uuid, rank, task, job, fresh, self.incarnation, self.life, self.endpoint, "test", os.getpid(), []]
        self.session = 0
        reply = self.call(HELLO, fields, [msgpack.packb({"workers": 1, **params})])
        if reply and reply.status == OK:
            self.session = reply.session
            self.incarnation, self.life = reply.fields[:2]
        return reply

    def declare(self, declarations):
        body = msgpack.packb([msgpack.unpackb(d) for d in packed(declarations)], use_single_float=True)
        return self.call(DECLARE, [], [body])

    def init_done(self, declarations, sent):
        return self.call(INIT_DONE, [sent, len(declarations), fingerprint(declarations)])


def shown(value, key=None):
    """As psctl's JSON has it: the incarnation in hexadecimal, no integers above 2^63 - 1."""
    if isinstance(value, dict):
        return {k: shown(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [shown(v) for v in value]
    if key == "incarnation" and isinstance(value, int):
        return f"{value:016x}"
    return None if isinstance(value, int) and value >= 2**63 else value


def ask(endpoint, op):
    """The reply to one request without fields, or None."""
    raw = Raw(endpoint)
    try:
        return raw.call(op)
    finally:
        raw.close()
