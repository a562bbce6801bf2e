"""Every rule that PyTorch has as well: the same gradients pushed by the Python client to a psd, and to torch.optim. Where
the definitions differ, the difference is the documented one and nothing else."""
import os
import sys

import numpy

import harness
import peers
from harness import expect

sys.path.insert(0, os.path.join(harness.ROOT, "worker", "examples"))
N, STEPS = 1003, 12


def gradients():
    random = numpy.random.default_rng(7)
    return [(random.standard_normal(N) * 10.0 ** random.integers(-2, 1, N)).astype("<f4") for _ in range(STEPS)]


def start_values():
    return numpy.random.default_rng(3).standard_normal(N).astype("<f4")


def by_psd(bench, rule, **params):
    """The values after each step."""
    import client as example
    psd = bench.psd(shards=2)
    declarations = [["w", "f32", [N], rule, {k: float(params[k]) for k in sorted(params)}, "values", 0, 0]]
    client = example.Client(psd.endpoint, "j", 0, False, {"workers": 1}, declarations, 20)
    client.values[0][:] = start_values()
    client.start()
    seen = []
    for g in gradients():
        client.exchange([g], 1)
        seen.append(client.values[0].copy())
    for c in client.connections:
        c.socket.close()
    psd.stop()
    return seen


def by_torch(torch, make, before=None):
    w = torch.nn.Parameter(torch.tensor(start_values()))
    optimizer = make([w])
    seen = []
    for step, g in enumerate(gradients()):
        w.grad = torch.tensor(g)
        if before:
            before(optimizer, w, step)
        optimizer.step()
        seen.append(w.detach().numpy().copy())
    return seen


def far(a, b):
    return max(float(numpy.linalg.norm(x - y) / numpy.linalg.norm(y)) for x, y in zip(a, b))


def agree(what, ours, theirs, bound=1e-6):
    d = far(ours, theirs)
    print(f"{what}: {d:.1e}")
    expect(d <= bound, f"{what}: ||w - w'|| / ||w'|| is {d:g}")


def test_where_definitions_agree(bench):
    torch = peers.load("torch", "python3-torch")
    o = torch.optim
    agree("sgd", by_psd(bench, "sgd", lr=0.1), by_torch(torch, lambda p: o.SGD(p, 0.1)))
    agree("sgd, weight decay", by_psd(bench, "sgd", lr=0.1, weight_decay=0.25),
          by_torch(torch, lambda p: o.SGD(p, 0.1, weight_decay=0.25)))
    agree("momentum", by_psd(bench, "momentum", lr=0.1, momentum=0.9), by_torch(torch, lambda p: o.SGD(p, 0.1, 0.9)))
    agree("nesterov", by_psd(bench, "nesterov", lr=0.1, momentum=0.9),
          by_torch(torch, lambda p: o.SGD(p, 0.1, 0.9, nesterov=True)))
    agree("adagrad, started alike", by_psd(bench, "adagrad", lr=0.1, initial_accumulator=0.25, eps=1e-3),
          by_torch(torch, lambda p: o.Adagrad(p, 0.1, initial_accumulator_value=0.25, eps=1e-3)))


def test_schedule(bench):
    torch = peers.load("torch", "python3-torch")

    def rate(optimizer, _, step):
        optimizer.param_groups[0]["lr"] = 0.1 * 0.5 ** (step / 4)

    agree("exponential rate, weight decay",
          by_psd(bench, "momentum", **{"lr": 0.1, "weight_decay": 0.25, "exponential.rate": 0.5, "exponential.steps": 4}),
          by_torch(torch, lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=0.25), rate))


def test_adagrad_starts_elsewhere(bench):
    torch = peers.load("torch", "python3-torch")
    ours = by_psd(bench, "adagrad", lr=0.1)
    expect(far(ours, by_torch(torch, lambda p: torch.optim.Adagrad(p, 0.1))) > 1e-3, "torch starts at 0, we at 0.1")
    agree("adagrad, torch started at 0.1 and without eps", ours,
          by_torch(torch, lambda p: torch.optim.Adagrad(p, 0.1, initial_accumulator_value=0.1, eps=0)))


def test_adam_has_its_epsilon_elsewhere(bench):
    """Ours: alpha_t m / (sqrt(v) + eps); torch: lr m_hat / (sqrt(v_hat) + eps), which is ours with eps sqrt(1 - b2^t)."""
    torch = peers.load("torch", "python3-torch")

    def moved(optimizer, _, step):
        optimizer.param_groups[0]["eps"] = 0.01 / (1 - 0.999 ** (step + 1)) ** 0.5

    ours = by_psd(bench, "adam", lr=0.1, eps=0.01)
    expect(far(ours, by_torch(torch, lambda p: torch.optim.Adam(p, 0.1, eps=0.01))) > 1e-3, "they differ")
    agree("adam, torch's eps divided by sqrt(1 - b2^t)", ours, by_torch(torch, lambda p: torch.optim.Adam(p, 0.1), moved), 1e-5)


def test_rmsprop_starts_at_one_with_its_epsilon_inside(bench):
    torch = peers.load("torch", "python3-torch")

    def at_one(optimizer, w, step):
        if step == 0:
            state = optimizer.state[w]
            state["step"], state["square_avg"] = 0, torch.ones(N)
            state["momentum_buffer"], state["grad_avg"] = torch.zeros(N), torch.zeros(N)

    for rule, centered in (("rmsprop", False), ("rmsprop-centered", True)):
        def make(p, centered=centered):
            return torch.optim.RMSprop(p, 0.1, alpha=0.9, eps=0, momentum=0.5, centered=centered)
        ours = by_psd(bench, rule, lr=0.1, momentum=0.5)
        expect(far(ours, by_torch(torch, make)) > 1e-3, "torch starts at 0, we at 1")
        agree(f"{rule}, torch started at 1", ours, by_torch(torch, make, at_one), 1e-5)


harness.main(test_where_definitions_agree, test_schedule, test_adagrad_starts_elsewhere, test_adam_has_its_epsilon_elsewhere,
             test_rmsprop_starts_at_one_with_its_epsilon_inside)
