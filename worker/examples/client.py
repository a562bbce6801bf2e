#!/usr/bin/env python3
"""client.py - a worker of psd in NumPy, written from psd-protocol(7) alone.

Trains softmax regression as one rank of a synchronous job, beside workers in C that declare the same
variables: dtworker train --algorithm ssgd --model softmax with equal --workers, --lr and --seed.
One ps task, any number of shards. It draws its own rows; how a worker reads data is its own affair."""
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
OK, PARKED, HELLO_REQUIRED, HELLO_FIRST, LEFT, RANK_TAKEN, GOING_DOWN = 0, 1, 16, 17, 18, 22, 31
SLICE, MAX_ITEMS, NO_STEP = 262144, 64, 2**64 - 1


class Lost(Exception):
    """This worker's life has ended: start anew."""


class Refused(Exception):
    """psd refused a request for good."""


class Connection:
    """A DEALER to one shard. One unanswered request at a time (PARKED is an answer) keeps any window."""

    def __init__(self, endpoint):
        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.linger = 1000
        self.socket.connect(endpoint)
        self.session, self.heard = 0, time.monotonic()
        self.queue, self.sent = collections.deque(), {}  # sent: request -> [op, fields, frames, parked]

    def send(self, op, request, fields, frames=()):
        self.socket.send_multipart([msgpack.packb([1, op, request, self.session] + fields), *frames])

    def send_next(self):
        if self.queue and all(entry[3] for entry in self.sent.values()):
            request, op, fields, frames = self.queue.popleft()
            self.sent[request] = [op, fields, frames, False]
            self.send(op, request, fields, frames)

    def resend(self):
        for request, entry in self.sent.items():
            entry[3] = False
            self.send(entry[0], request, entry[1], entry[2])

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
    def __init__(self, ps, job, rank, params, declarations, retry_for):
        self.ps, self.job, self.rank, self.retry_for = ps, job, rank, retry_for
        self.params = msgpack.packb(params)
        pack = msgpack.Packer(use_single_float=True).pack
        self.declared = [pack(d) for d in declarations]
        self.values = [np.zeros(int(np.prod(d[2])), "<f4") for d in declarations]
        self.uuid, self.ids, self.counter = os.urandom(16), itertools.count(1), 0
        self.incarnation = self.life = 0
        self.connections, self.done, self.beat, self.fates = [Connection(ps)], {}, 0, collections.Counter()

    def hello(self, shard):
        """Register on a connection. True: resumed, and what is outstanding was sent again."""
        c, end = self.connections[shard], time.monotonic() + self.retry_for
        while time.monotonic() < end:
            c.session, request = 0, next(self.ids)
            c.send(HELLO, request, [self.uuid, self.rank, 0, self.job, False, self.incarnation, self.life, self.ps,
                                    socket.gethostname()[:64], os.getpid(), []], [self.params])
            wait = time.monotonic() + 1
            reply = c.receive(1)
            while reply and reply[0] != HELLO:  # HELLO_REQUIRED to what was sent before
                reply = c.receive(wait - time.monotonic())
            if not reply or reply[3] in (RANK_TAKEN, GOING_DOWN, HELLO_REQUIRED):
                time.sleep(max(0, wait - time.monotonic()))
            elif reply[3] == HELLO_FIRST and shard:
                if not self.hello(0):
                    raise Lost
            elif reply[3] != OK:
                raise Refused(reply[3], reply[4])
            else:
                return self.registered(shard, reply[2], reply[5])
        raise TimeoutError(f"{self.ps} did not answer for {self.retry_for} s")

    def registered(self, shard, session, fields):
        c = self.connections[shard]
        c.session, resumed = session, (self.incarnation, self.life) == (fields[0], fields[1])
        if shard == 0:
            self.incarnation, self.life, peers, self.lease = fields[0], fields[1], fields[4], fields[11] / 1000
            self.must_join, self.first = fields[6], fields[7]
            for peer in peers[len(self.connections):]:
                base = self.ps.rsplit(":", 1)[0] + ":" if self.ps.startswith("tcp") else self.ps
                self.connections.append(Connection(base + peer))
        if resumed:
            c.resend()
        return resumed

    def take(self, shard, op, request, session, status, text, fields, frames):
        c = self.connections[shard]
        if status == HELLO_REQUIRED:
            if not self.hello(shard):
                raise Lost
        elif op == HELLO and status == OK:
            c.session = session  # a HELLO that was repeated: the last session counts
        elif request in c.sent and status == PARKED:
            c.sent[request][3] = True
        elif request in c.sent and status != GOING_DOWN:
            del c.sent[request]
            if status not in (OK, LEFT):
                raise Refused(status, text)
            self.done[request] = fields, frames

    def pump(self):
        now = time.monotonic()
        for c in self.connections:
            if now >= self.beat:
                c.send(HEARTBEAT, next(self.ids), [])
            if now - c.heard > self.retry_for:
                raise TimeoutError(f"{self.ps} did not answer for {self.retry_for} s")
            c.send_next()
        if now >= self.beat:
            self.beat = now + self.lease / 4
        poller = zmq.Poller()
        for c in self.connections:
            poller.register(c.socket, zmq.POLLIN)
        ready = dict(poller.poll(int(self.lease * 250)))
        for shard, c in enumerate(self.connections):
            if c.socket in ready:
                self.take(shard, *c.receive(0))

    def call(self, requests):
        """[(shard, op, fields, frames)] -> [(fields, frames)] when all are answered."""
        ids = [next(self.ids) for _ in requests]
        for request, (shard, op, fields, frames) in zip(ids, requests):
            self.connections[shard].queue.append((request, op, fields, frames))
        while any(request not in self.done for request in ids):
            self.pump()
        return [self.done.pop(request) for request in ids]

    def start(self):
        """Register, declare, initialise, join, pull: after it self.values are those of the step returned."""
        while True:
            try:
                for c in self.connections:
                    c.queue.clear(), c.sent.clear()
                self.hello(0)
                for shard in range(1, len(self.connections)):
                    self.hello(shard)
                self.declare()
                self.initialise()
                if self.must_join:
                    self.first = self.call([(0, JOIN, [0], [])])[0][0][0]
                return self.exchange(want=self.first)
            except Lost:
                pass

    def declare(self):
        size = len(self.declared)
        body = (bytes([0x90 + size]) if size < 16 else b"\xdc" + size.to_bytes(2, "big")) + b"".join(self.declared)
        _, frames = self.call([(0, DECLARE, [], [body])])[0]
        slices = collections.defaultdict(list)  # of each shard: [variable id, slice, the part of self.values]
        for index, variable, homes in msgpack.unpackb(frames[0]):
            for i, shard in enumerate(homes):
                slices[shard].append([variable, i, index, slice(i * SLICE, (i + 1) * SLICE)])
        self.groups = [(shard, part[i:i + size]) for shard, part in slices.items()
                       for size in [MAX_ITEMS if all(p[1] == 0 for p in part) and len(self.values) < 8 else 1]
                       for i in range(0, len(part), size)]
        self.versions = {}

    def initialise(self):
        mark = 0xcbf29ce484222325
        for byte in b"".join(self.declared):
            mark = (mark ^ byte) * 0x100000001b3 % 2**64
        tail = [len(self.declared), mark]
        if self.call([(0, INIT_DONE, [False] + tail, [])])[0][0][0] == 2:  # granted to this worker
            self.call([(shard, INIT, [[[v, i] for v, i, _, _ in group]],
                        [np.zeros_like(self.values[index][part]).tobytes() for _, _, index, part in group])
                       for shard, group in self.groups])
            self.call([(0, INIT_DONE, [True] + tail, [])])

    def exchange(self, gradients=None, rows=0, want=0):
        """Without gradients PULL, with them PUSHPULL. Returns the step: the largest version pulled."""
        requests, self.counter = [], self.counter + 1
        for shard, group in self.groups:
            if gradients is None:
                requests.append((shard, PULL, [[[v, i, None, want] for v, i, _, _ in group]], []))
            else:
                items = [[v, i, self.versions[v, i], self.versions[v, i] + 1] for v, i, _, _ in group]
                frames = [gradients[index][part].tobytes() for _, _, index, part in group]
                requests.append((shard, PUSHPULL, [self.counter, rows, 1, items], frames))
        for (shard, group), (fields, frames) in zip(self.groups, self.call(requests)):
            self.fates.update(fate for fate, _ in fields[-2]) if gradients is not None else None
            for (v, i, index, part), (version, _), frame in zip(group, fields[-1], frames):
                self.values[index][part] = np.frombuffer(frame, "<f4")
                self.versions[v, i] = version
        return max(self.versions.values())

    def leave(self, last):
        try:
            self.call([(0, LEAVE, [last], [])])
        except Lost:
            pass  # psd has counted this worker out by itself
        except Refused as refused:
            if refused.args[0] != LEFT:
                raise


def read_idx(folder, name):
    path = os.path.join(folder, name)
    opener, path = (open, path) if os.path.exists(path) else (gzip.open, path + ".gz")
    with opener(path, "rb") as f:
        raw = f.read()
    dims = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * len(dims)).reshape(dims)


def gradient(x, y, kernel, bias):
    """Mean cross entropy of softmax(x kernel + bias), and its gradient."""
    z = x @ kernel + bias
    z = np.exp(z - z.max(axis=1, keepdims=True))
    z /= z.sum(axis=1, keepdims=True)
    loss = -np.log(z[np.arange(len(y)), y] + 1e-30).mean()
    z[np.arange(len(y)), y] -= 1
    z /= len(y)
    return loss, [(x.T @ z).astype("<f4").ravel(), z.sum(axis=0).astype("<f4")]


def main():
    parser = argparse.ArgumentParser(description="A worker of psd in NumPy: softmax regression.")
    parser.add_argument("--ps", required=True, help="endpoint of psd, e.g. tcp://127.0.0.1:2222")
    parser.add_argument("--job", required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--data", required=True, help="directory of IDX files")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lease", type=float, default=10, help="seconds; equal on all workers")
    parser.add_argument("--retry-for", type=float, default=60, help="seconds without an answer before giving up")
    a = parser.parse_args()
    x = read_idx(a.data, "train-images-idx3-ubyte")
    x = x.reshape(len(x), -1).astype(np.float32) / 255
    y = read_idx(a.data, "train-labels-idx1-ubyte").astype(int)
    features, classes = x.shape[1], int(y.max()) + 1
    sgd = ["sgd", {"lr": a.lr}, "zeros", a.seed, 0]
    client = Client(a.ps, a.job, a.rank, {"workers": a.workers, "lease_ms": int(a.lease * 1000)},
                    [["dense/kernel", "f32", [features, classes], *sgd], ["dense/bias", "f32", [classes], *sgd]],
                    a.retry_for)
    step, last, loss = client.start(), NO_STEP, float("nan")
    while step < a.steps:
        rows = np.random.default_rng([a.seed, a.rank, step]).choice(len(x), min(a.batch, len(x)), replace=False)
        loss, gradients = gradient(x[rows], y[rows], client.values[0].reshape(features, classes), client.values[1])
        try:
            last, step = step, client.exchange(gradients, len(rows))
        except Lost:
            print(f"rank {a.rank}: registering anew", file=sys.stderr)
            step = client.start()
    accuracy = (x @ client.values[0].reshape(features, classes) + client.values[1]).argmax(axis=1) == y
    client.leave(last)
    print(f"rank {a.rank}: step {step}, loss {loss:.4f}, training accuracy {accuracy.mean():.4f}, "
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
