"""peer_torch.py - PyTorch's side of compare_peers.py: its processes, each prints one JSON object.

    peer_torch.py train DATA MODEL BATCH STEPS LR RANK WORKERS STORE [CPU]    one process of a training
    peer_torch.py rpc BYTES SECONDS RANK STORE                                rank 0 serves, rank 1 measures

STORE is a file that the processes of one run share; the processes find each other by it, on loopback, so that no port
is named. Each process computes with one thread, on the processor CPU where it is given; gloo's threads are free."""
import json
import os
import sys
import time

os.environ["GLOO_SOCKET_IFNAME"] = os.environ["TP_SOCKET_IFNAME"] = "lo"
os.environ["OMP_NUM_THREADS"] = "1"

import numpy
import torch
import torch.distributed
import torch.distributed.rpc as rpc
import torch.nn.functional as functional

WARM_STEPS = 10
RATE, GRADIENT = 2.0 ** -10, 2.0 ** -4  # exact up to 2^24 updates


def network(model, features, classes):
    """`softmax` or `mlp:H1,H2,...`: layers and initial values (zeros; He's uniform) of dtworker's models."""
    hidden = [int(n) for n in model.removeprefix("mlp:").split(",")] if model != "softmax" else []
    widths, layers = [features, *hidden, classes], []
    for n_in, n_out in zip(widths, widths[1:]):
        layer = torch.nn.Linear(n_in, n_out)
        torch.nn.init.zeros_(layer.bias)
        if hidden:
            torch.nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
        else:
            torch.nn.init.zeros_(layer.weight)
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def rows_of(n_rows, batch, rank, workers):
    """A permutation of the rows per epoch; global batch s is its s-th part, a rank has a part of that."""
    while True:
        for part in torch.randperm(n_rows).split(batch * workers):
            yield part.tensor_split(workers)[rank]


def loss_of(net, x, y):
    with torch.no_grad():
        return sum(functional.cross_entropy(net(a), b, reduction="sum").item()
                   for a, b in zip(x.split(1000), y.split(1000))) / len(y)


def train(data, model, batch, steps, rate, rank, workers, store, cpu=None):
    batch, steps, rate, rank, workers = int(batch), int(steps), float(rate), int(rank), int(workers)
    arrays = numpy.load(data)
    x = torch.tensor(arrays["x_train"]).float().div_(255)
    y = torch.tensor(arrays["y_train"]).long()
    torch.manual_seed(1)
    net = network(model, x.shape[1], 10)
    trained, wait = net, lambda: None
    if workers > 1:
        torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=workers)
        trained, wait = torch.nn.parallel.DistributedDataParallel(net), torch.distributed.barrier
    if cpu is not None:
        os.sched_setaffinity(0, {int(cpu)})
    optimizer, rows, samples = torch.optim.SGD(net.parameters(), rate), rows_of(len(y), batch, rank, workers), 0
    before = loss_of(net, x, y)
    for step in range(WARM_STEPS + steps):
        if step == WARM_STEPS:
            wait()
            samples, begin = 0, time.perf_counter()
        mine = next(rows)
        optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(trained(x[mine]), y[mine]).backward()
        optimizer.step()
        samples += len(mine)
    wait()
    seconds = time.perf_counter() - begin
    print(json.dumps({"samples": samples, "seconds": seconds, "loss_before": before, "loss": loss_of(net, x, y)}))


VALUES = None  # of the server


def serve(elements):
    global VALUES
    VALUES = torch.zeros(elements)


def push(gradient):
    VALUES.add_(gradient, alpha=-RATE)


def pull():
    return VALUES


def a_second(call, seconds):
    """Calls a second, and how many there were."""
    call()
    n, begin = 0, time.perf_counter()
    while n == 0 or time.perf_counter() - begin < seconds:
        call()
        n += 1
    return n / (time.perf_counter() - begin), n + 1


def measure(n_bytes, seconds):
    gradient = torch.full((n_bytes // 4,), GRADIENT)
    rpc.rpc_sync("0", serve, (n_bytes // 4,))
    pushes, n = a_second(lambda: rpc.rpc_sync("0", push, (gradient,)), seconds)
    pulls, _ = a_second(lambda: rpc.rpc_sync("0", pull), seconds)
    values = rpc.rpc_sync("0", pull)
    right = values.shape == gradient.shape and bool((values == -RATE * GRADIENT * n).all())
    print(json.dumps({"push": pushes, "pull": pulls, "right": right}))


def transfer(n_bytes, seconds, rank, store):
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{store}", rpc_timeout=60,
                                              _transports=["uv"], _channels=["basic"])  # tcp, no shared memory
    rpc.init_rpc(rank, rank=int(rank), world_size=2, rpc_backend_options=options)
    if rank == "1":
        measure(int(n_bytes), float(seconds))
    rpc.shutdown()


torch.set_num_threads(1)
{"train": train, "rpc": transfer}[sys.argv[1]](*sys.argv[2:])
