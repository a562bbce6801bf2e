#!/usr/bin/python3
"""client.py - a worker of psd in NumPy, written from psd-protocol(7) alone.

Trains softmax regression as one rank of a synchronous job, beside C workers that declare the same variables
(dtworker train --algorithm ssgd --model softmax with equal --workers, --lr, --seed and --lease). One ps task,
any number of shards. It draws its own rows: how a worker reads data is its own affair."""
import argparse
import collections
import gzip
import itertools
import os
import socket
import sys
import time

import msgpack
import numpy as np
import zmq

HELLO, JOIN, LEAVE, HEARTBEAT, DECLARE, INIT, INIT_DONE, GOODBYE, PULL, PUSHPULL = 1, 2, 3, 4, 5, 6, 7, 14, 17, 18
OK, PARKED, HELLO_REQUIRED, HELLO_FIRST, RANK_TAKEN, GOING_DOWN = 0, 1, 16, 17, 22, 31
SLICE, NO_STEP, GRANTED = 262144, 2**64 - 1, 2


class Again(Exception):
    """The connection was re-made, this worker's life has ended or psd was restarted: start anew."""


class Refused(Exception):
    """psd refused a request for good: status and text."""


class Connection:
    """A DEALER to one shard. One unanswered request at a time (PARKED is an answer) keeps any window."""

    def __init__(self, endpoint):
        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.linger = 1000
        self.socket.connect(endpoint)
        self.heard = time.monotonic()
        self.forget()

    def forget(self):
        self.session, self.queue, self.sent = 0, collections.deque(), {}  # sent: request -> was it parked?

    def send(self, op, request, fields, frames=()):
        self.socket.send_multipart([msgpack.packb([1, op, request, self.session, *fields]), *frames])

    def send_next(self):
        if self.queue and all(self.sent.values()):
            op, request, fields, frames = self.queue.popleft()
            self.sent[request] = False
            self.send(op, request, fields, frames)

    def receive(self, timeout):
        """(op, request, session, status, text, fields, frames), or None when there is none in time."""
        if not self.socket.poll(max(0, int(timeout * 1000))):
            return None
        head, *frames = self.socket.recv_multipart()
        _, op, request, session, status, text, _, *fields = msgpack.unpackb(head)
        self.heard = time.monotonic()
        if op == GOODBYE + 128:
            self.send(GOODBYE, 0, [])
        return op - 128, request, session, status, text, fields, frames


class Client:
    def __init__(self, ps, job, rank, fresh, params, declarations, retry_for):
        self.ps, self.job, self.rank, self.fresh, self.retry_for = ps, job, rank, fresh, retry_for
        self.params = msgpack.packb(params)
        pack = msgpack.Packer(use_single_float=True).pack
        self.body, self.mark = pack(declarations), 0xcbf29ce484222325
        for byte in b"".join(pack(d) for d in declarations):
            self.mark = (self.mark ^ byte) * 0x100000001b3 % 2**64
        self.values = [np.zeros(int(np.prod(d[2])), "<f4") for d in declarations]
        self.uuid, self.ids, self.counter = os.urandom(16), itertools.count(1), 0
        self.incarnation = self.life = self.beat = 0
        self.connections, self.done, self.fates = [Connection(ps)], {}, collections.Counter()

    def hello(self, shard):
        """Register on a connection, trying each second. The fields of the reply."""
        c, end = self.connections[shard], time.monotonic() + self.retry_for
        while time.monotonic() < end:
            again = time.monotonic() + 1
            c.send(HELLO, next(self.ids), [self.uuid, self.rank, 0, self.job, self.fresh, self.incarnation, self.life,
                                           self.ps, socket.gethostname()[:64], os.getpid(), []], [self.params])
            reply = c.receive(1)
            while reply and reply[0] != HELLO:  # answers to what was sent before
                reply = c.receive(again - time.monotonic())
            if reply and reply[3] == OK:
                c.session = reply[2]
                return reply[5]
            if reply and reply[3] == HELLO_FIRST:
                raise Again
            if reply and reply[3] not in (RANK_TAKEN, GOING_DOWN, HELLO_REQUIRED):
                raise Refused(reply[3], reply[4])
            time.sleep(max(0, again - time.monotonic()))
        raise TimeoutError(f"{self.ps} did not let this worker in for {self.retry_for:g} s")

    def take(self, c, op, request, session, status, text, fields, frames):
        if status == HELLO_REQUIRED:
            raise Again
        if op == HELLO and status == OK:
            c.session = session  # the HELLO was repeated: the last session counts
        elif request in c.sent and status == PARKED:
            c.sent[request] = True
        elif request in c.sent and status == OK:
            del c.sent[request]
            self.done[request] = fields, frames
        elif request in c.sent and status != GOING_DOWN:
            raise Refused(status, text)

    def pump(self):
        now, poller = time.monotonic(), zmq.Poller()
        for c in self.connections:
            if now >= self.beat:
                c.send(HEARTBEAT, next(self.ids), [])
            if now - c.heard > self.retry_for:
                raise TimeoutError(f"{self.ps} did not answer for {self.retry_for:g} s")
            c.send_next()
            poller.register(c.socket, zmq.POLLIN)
        if now >= self.beat:
            self.beat = now + self.lease / 4
        ready = dict(poller.poll(int(self.lease * 250)))
        for c in self.connections:
            reply = c.socket in ready and c.receive(0)
            if reply:
                self.take(c, *reply)

    def call(self, *requests):
        """Each (shard, op, fields, frames); their (fields, frames) when all are answered."""
        ids = [next(self.ids) for _ in requests]
        for request, (shard, op, fields, frames) in zip(ids, requests):
            self.connections[shard].queue.append((op, request, fields, frames))
        while any(request not in self.done for request in ids):
            self.pump()
        return [self.done.pop(request) for request in ids]

    def start(self):
        """Register, declare, initialise, join, pull; also after anything went wrong: a push that was on its way is
        then computed anew, and dropped as a duplicate if psd had it. Returns the step of self.values."""
        while True:
            try:
                for c in self.connections:
                    c.forget()
                fields = self.hello(0)
                self.incarnation, self.life, peers, must_join, first = *fields[:2], fields[4], *fields[6:8]
                self.lease = fields[11] / 1000
                base = self.ps.rsplit(":", 1)[0] + ":" if self.ps.startswith("tcp") else self.ps
                self.connections += [Connection(base + peer) for peer in peers[len(self.connections):]]
                for shard in range(1, len(self.connections)):
                    self.hello(shard)
                self.declare()
                if must_join:
                    first = self.call((0, JOIN, [0], []))[0][0][0]
                return self.exchange(want=first)
            except Again:
                pass

    def declare(self):
        _, (body,) = self.call((0, DECLARE, [], [self.body]))[0]
        self.slices = [(shard, variable, i, self.values[index][i * SLICE:(i + 1) * SLICE], index)
                       for index, variable, homes in msgpack.unpackb(body) for i, shard in enumerate(homes)]
        tail = [len(self.values), self.mark]
        if self.call((0, INIT_DONE, [False, *tail], []))[0][0][0] == GRANTED:  # the first values are ours to give
            self.call(*((shard, INIT, [[[variable, i]]], [part.tobytes()])
                        for shard, variable, i, part, _ in self.slices))
            self.call((0, INIT_DONE, [True, *tail], []))

    def exchange(self, gradients=None, rows=0, want=0):
        """PULL, or PUSHPULL of gradients; one slice a message. Returns the step: the largest version pulled."""
        requests, self.counter = [], self.counter + 1
        for shard, variable, i, _, index in self.slices:
            if gradients is None:
                requests.append((shard, PULL, [[[variable, i, None, want]]], []))
            else:
                version, part = self.versions[variable, i], gradients[index][i * SLICE:(i + 1) * SLICE]
                requests.append((shard, PUSHPULL, [self.counter, rows, 1, [[variable, i, version, version + 1]]],
                                 [part.tobytes()]))
        self.versions = {}
        for (_, variable, i, part, _), (fields, frames) in zip(self.slices, self.call(*requests)):
            self.fates.update(fate for fate, _ in (fields[0] if gradients is not None else ()))
            self.versions[variable, i] = fields[-1][0][0]
            part[:] = np.frombuffer(frames[0], "<f4")
        return max(self.versions.values())


def read_idx(folder, name):
    path = os.path.join(folder, name)
    with open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz") as f:
        raw = f.read()
    dims = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * len(dims)).reshape(dims)


def gradient(x, y, kernel, bias):
    """Mean cross entropy of softmax(x kernel + bias), and its gradient."""
    z = x @ kernel.reshape(x.shape[1], -1) + bias
    z = np.exp(z - z.max(axis=1, keepdims=True))
    z /= z.sum(axis=1, keepdims=True)
    loss = -np.log(z[np.arange(len(y)), y] + 1e-30).mean()
    z[np.arange(len(y)), y] -= 1
    z /= len(y)
    return loss, [(x.T @ z).astype("<f4").ravel(), z.sum(axis=0).astype("<f4")]


def main():
    parser = argparse.ArgumentParser(description="A worker of psd in NumPy: softmax regression.")
    for name, kind, default, text in (
            ("ps", str, None, "endpoint of psd, e.g. tcp://127.0.0.1:2222"), ("job", str, None, "name of the job"),
            ("rank", int, None, "which worker this is"), ("workers", int, None, "how many are expected"),
            ("data", str, None, "directory of IDX files"), ("steps", int, 100, ""), ("batch", int, 100, ""),
            ("lr", float, 0.1, ""), ("seed", int, 1, ""), ("lease", float, 10, "seconds"),
            ("retry-for", float, 60, "seconds without an answer before it gives up")):
        parser.add_argument("--" + name, type=kind, default=default, required=default is None, help=text)
    parser.add_argument("--fresh", action="store_true",
                        help="replace a job of this name that is complete, failed, or without workers")
    a = parser.parse_args()
    x = read_idx(a.data, "train-images-idx3-ubyte")
    x = x.reshape(len(x), -1).astype(np.float32) / 255
    y = read_idx(a.data, "train-labels-idx1-ubyte").astype(int)
    features, classes, rule = x.shape[1], int(y.max()) + 1, ["sgd", {"lr": a.lr}, "zeros", a.seed, 0]
    client = Client(a.ps, a.job, a.rank, a.fresh, {"workers": a.workers, "lease_ms": int(a.lease * 1000)},
                    [["dense/kernel", "f32", [features, classes], *rule], ["dense/bias", "f32", [classes], *rule]],
                    a.retry_for)
    step, last, loss = client.start(), NO_STEP, float("nan")
    while step < a.steps:
        rows = np.random.default_rng([a.seed, a.rank, step]).choice(len(x), min(a.batch, len(x)), replace=False)
        loss, gradients = gradient(x[rows], y[rows], *client.values)
        try:
            last, step = step, client.exchange(gradients, len(rows))
        except Again:
            print(f"rank {a.rank}: registering anew", file=sys.stderr)
            step = client.start()
    right = (x @ client.values[0].reshape(features, classes) + client.values[1]).argmax(axis=1) == y
    try:
        client.call((0, LEAVE, [last], []))
    except Again:
        pass  # without a word its lease ends, and psd counts it out as well
    print(f"rank {a.rank}: step {step}, loss {loss:.4f}, training accuracy {right.mean():.4f}, "
          f"slices taken {client.fates[1] + client.fates[2]}, stale {client.fates[3]}")


if __name__ == "__main__":
    try:
        main()
    except TimeoutError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(69)
    except Refused as error:
        print("error: psd refused (status %d): %s" % error.args, file=sys.stderr)
        sys.exit(75)
