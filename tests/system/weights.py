"""weights.py - reads a model file (safetensors) with json and NumPy alone, and compares two by norm."""
import json
import struct

import numpy


def read(path):
    """The header and all bytes behind it."""
    with open(path, "rb") as f:
        data = f.read()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8:8 + size]), data[8 + size:]


def step(path):
    """The step that the values are of."""
    return int(read(path)[0]["__metadata__"]["step"])


def load(path):
    header, data = read(path)
    tensors = {}
    for name, t in header.items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            tensors[name] = numpy.frombuffer(data[begin:end], "<f4").reshape(t["shape"])
    return tensors


def distance(a, b):
    """The largest ||x - y|| / ||y|| over the variables."""
    assert a.keys() == b.keys() and a, (a.keys(), b.keys())
    worst = 0.0
    for name, y in b.items():
        x, y = a[name].astype("f8"), y.astype("f8")
        worst = max(worst, float(numpy.linalg.norm(x - y) / max(numpy.linalg.norm(y), 1e-30)))
    return worst
