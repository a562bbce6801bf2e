"""worker/examples/client.py, written from psd-protocol(7) alone, trains softmax beside C workers."""
import os
import re
import signal

import harness
from harness import expect

CLIENT = os.path.join(harness.ROOT, "worker", "examples", "client.py")
STEPS = 150


def client(bench, ps, rank, workers, *extra):
    return bench.start("client", ["/usr/bin/python3", CLIENT, "--ps", ps.endpoint, "--job", "j", "--rank", str(rank),
                                  "--workers", str(workers), "--data", harness.digits(), "--batch", "50", "--lr", "0.5",
                                  "--seed", "3", "--lease", "1", *map(str, extra)])


def c_worker(bench, psd, rank, workers, *extra):
    return bench.train(psd, rank, workers, "--data", harness.digits(), "--batch", 50, "--lr", "0.5", "--seed", 3,
                       "--lease", "1", "--json", *extra, model="softmax")


def check_client(process):
    process.expect_exit(0)
    found = re.search(r"training accuracy ([\d.]+), slices taken (\d+), stale (\d+)", process.out())
    expect(found, f"its last line: {process.out()[-300:]}")
    expect(float(found.group(1)) > 0.85, f"training accuracy {found.group(1)}")
    return int(found.group(2)), int(found.group(3))


def test_beside_c(bench, **psd_options):
    psd = bench.psd(**(psd_options or {"shards": 3}))
    python = client(bench, psd, 1, 2, "--steps", STEPS)
    c = c_worker(bench, psd, 0, 2, "--steps", STEPS)
    taken, stale = check_client(python)
    expect((taken, stale) == (2 * STEPS, 0), f"two slices a step, {taken} taken, {stale} stale")
    c.expect_exit(0)
    expect(c.json()["test_accuracy"] > 0.8, f"test accuracy {c.json()['test_accuracy']}")
    expect(psd.job()["step"] == STEPS, "the job ended at its step")
    psd.stop()


def test_over_ipc(bench):
    test_beside_c(bench, ipc=True, shards=1)


def test_a_second_run(bench):
    psd = bench.psd(shards=2)
    check_client(client(bench, psd, 0, 1, "--steps", STEPS))
    again = client(bench, psd, 0, 1, "--steps", STEPS)
    again.expect_exit(75)
    expect("job j is complete and read-only: use --fresh to replace it, or another --job" in again.err(), again.err())
    check_client(client(bench, psd, 0, 1, "--steps", STEPS, "--fresh"))
    psd.stop()


def test_alone_after_a_death(bench):
    """The C worker is killed: the Python one goes on alone."""
    psd = bench.psd(shards=2)
    c = c_worker(bench, psd, 0, 2, "--steps", 1000000, "--step-delay", 20)
    python = client(bench, psd, 1, 2, "--steps", STEPS)
    harness.wait_until(lambda: any(j["step"] >= 5 for j in psd.status()["jobs"]), "they train")
    c.signal(signal.SIGKILL)
    check_client(python)
    expect(psd.job()["counters"]["lost"] == 1, "one was lost")
    psd.stop()


def test_stopped_and_continued(bench):
    """Beyond its lease: its life has ended, it registers anew and joins."""
    psd = bench.psd(shards=2)
    python = client(bench, psd, 1, 2, "--steps", 400)
    c = c_worker(bench, psd, 0, 2, "--steps", 400, "--step-delay", 20)
    harness.wait_until(lambda: any(j["step"] >= 5 for j in psd.status()["jobs"]), "they train")
    python.signal(signal.SIGSTOP)
    harness.wait_until(lambda: psd.job()["counters"]["lost"] == 1, "its lease ends")
    python.signal(signal.SIGCONT)
    check_client(python)
    c.expect_exit(0)
    expect(psd.job()["counters"]["joined"] == 1, f"counters {psd.job()['counters']}")
    psd.stop()


def test_connection_cut(bench):
    """In mid-stream, three times: it registers anew, nothing is counted twice."""
    psd = bench.psd(shards=1)
    proxy = bench.proxy(psd)
    python = client(bench, proxy, 1, 2, "--steps", 300)
    c = c_worker(bench, psd, 0, 2, "--steps", 300, "--step-delay", 10)
    for n in range(3):
        harness.wait_until(lambda n=n: any(j["step"] >= 20 + 60 * n for j in psd.status()["jobs"]), "they train")
        proxy.cut_after(50000)
        harness.wait_until(lambda n=n: proxy.n_cut > n, "the connection is cut")
    taken, _ = check_client(python)
    expect(proxy.n_cut == 3, f"cut {proxy.n_cut} times")
    expect(taken > 580, f"{taken} slices taken")
    c.expect_exit(0)
    counters = psd.job()["counters"]
    expect(counters["accumulated"] == 2 * 2 * 300, f"each step has one gradient of each rank and slice: {counters}")
    expect(counters["lost"] == 0, "its lease went on")
    psd.stop()


harness.main(test_beside_c, test_over_ipc, test_a_second_run, test_connection_cut, test_alone_after_a_death, test_stopped_and_continued)
