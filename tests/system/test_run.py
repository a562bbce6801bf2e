"""dtworker run: a private cluster that leaves nothing behind, whatever happens to it."""
import os
import signal
import time

import harness
from harness import expect

LONG_RUN = ("--workers", 2, "--algorithm", "ssgd", "--model", "toy", "--steps", 1000000, "--step-delay", 10)


def start_long_run(bench, ps_tasks=1):
    run = bench.dtworker("run", "--ps-tasks", ps_tasks, *LONG_RUN, group=True)
    harness.wait_until(lambda: len(bench.marked()) >= 3 + ps_tasks or not run.is_alive(), "psd and two workers run")
    expect(run.is_alive(), "run goes on")
    time.sleep(1)
    return run


def test_whole(bench):
    run = bench.dtworker("run", "--ps-tasks", 1, "--workers", 2, "--algorithm", "ssgd", "--model", "softmax", "--data",
                         harness.digits(), "--epochs", 5, "--batch", 50, "--lr", "0.5", "--json")
    run.expect_exit(0)
    result = run.json()
    for key in ("algorithm", "model", "workers", "ps_tasks", "steps", "samples", "seconds", "samples_per_second",
                "time", "train_loss", "test_accuracy", "stale_dropped", "partial", "unseen_rows"):
        expect(key in result, f"--json has {key}")
    expect(result["steps"] == 75 and result["workers"] == 2 and result["ps_tasks"] == 1, f"result {result}")
    expect(result["samples"] == 5 * 1500, f"each of 1500 rows once an epoch, not {result['samples']}")
    expect(result["test_accuracy"] > 0.8, f"test accuracy {result['test_accuracy']}")
    time_of = result["time"]
    expect(abs(sum(time_of.values()) - 1) < 1e-6 and min(time_of.values()) >= 0, f"shares of time {time_of}")
    expect(time_of["compute"] > 0 and time_of["wait"] > 0, f"both compute and wait for the other: {time_of}")
    expect(all("compute" in d["time"] for d in result["workers_detail"]), f"{result['workers_detail']}")
    bench.expect_nothing_left()


def test_two_ps_tasks(bench):
    run = bench.dtworker("run", "--ps-tasks", 2, "--workers", 2, "--algorithm", "ssgd", "--model", "softmax", "--data",
                         harness.digits(), "--epochs", 2, "--batch", 50, "--lr", "0.5", "--json")
    run.expect_exit(0)
    expect(run.json()["steps"] == 30, "two epochs of 15 steps")


def threads_of(bench, name):
    """Of each process with this name: the processors of its main thread, and of all its threads together."""
    found = []
    for pid in bench.marked():
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            argv = f.read().split(b"\0")
        if name in argv[:2]:
            tasks = os.listdir(f"/proc/{pid}/task")
            found.append((os.sched_getaffinity(pid), set.union(*(os.sched_getaffinity(int(t)) for t in tasks))))
    return found


def bound(bench, workers, *args):
    """threads_of() the workers of a run that trains."""
    metrics = os.path.join(bench.dir, "m")
    run = bench.dtworker("run", *LONG_RUN[2:], "--workers", workers, "--threads", 1, *args, "--metrics", metrics)
    harness.wait_until(lambda: harness.has_content(metrics), "it trains")
    found = threads_of(bench, b"train")
    os.unlink(metrics)
    run.signal(signal.SIGTERM)
    run.expect_exit(-signal.SIGTERM)
    expect(len(found) == workers, f"{found}")
    return found


def test_each_worker_computes_on_processors_of_its_own(bench):
    mine = os.sched_getaffinity(0)
    n = len(mine)
    if n < 2 or n > 16:
        raise harness.Skipped(f"run: {n} processors")
    found = bound(bench, n)
    expect(sorted(cpus for main, _ in found for cpus in main) == sorted(mine), f"one each: {found}")
    expect(all(all_ == mine for _, all_ in found), f"what talks to psd is free: {found}")
    for args in ((n, "--cpus", "any"), (n + 1,), (2 * n,)):
        expect(all(main == mine for main, _ in bound(bench, *args)), f"{args}: nobody is bound")


def test_train_computes_where_it_is_told(bench):
    """As many BLAS threads as processors, unless --threads says other."""
    cpu = max(os.sched_getaffinity(0))
    for args, said in (((), "1 thread"), (("--threads", 2), "2 threads")):
        worker = bench.dtworker("train", "--algorithm", "local", "--model", "toy", "--steps", 3, "--cpus", cpu, *args)
        worker.expect_exit(0)
        expect(f", {said} on cpu {cpu}, 3 steps\n" in worker.out(), worker.out())


def test_control_c(bench):
    run = start_long_run(bench)
    os.killpg(run.pid, signal.SIGINT)  # a terminal sends it to the whole group
    run.expect_exit(-signal.SIGINT)


def test_terminate_parent_alone(bench):
    run = start_long_run(bench)
    run.signal(signal.SIGTERM)
    run.expect_exit(-signal.SIGTERM)


def test_the_last_window_may_be_short(bench):
    run = bench.dtworker("run", "--algorithm", "sagn", "--model", "toy", "--window", 4, "--steps", 10, "--json")
    run.expect_exit(0)
    expect(run.json()["steps"] == 10, f"windows of 4, 4 and 2 batches: {run.json()['steps']}")


def test_a_run_too_short_to_meet_the_centre_says_so_once(bench):
    for steps, lines in ((10, 1), (11, 0)):
        run = bench.dtworker("run", "--algorithm", "aeasgd", "--model", "toy", "--workers", 3, "--steps", steps)
        run.expect_exit(0)
        said = [line for line in run.err().splitlines() if "nothing that it learns reaches the centre" in line]
        expect(len(said) == lines, f"{steps} steps: {run.err()}")
        expect(all("every 10 batches (--window)" in line and "10 steps" in line for line in said), run.err())


def test_dead_child(bench):
    run = start_long_run(bench)
    with open(f"/proc/{run.pid}/task/{run.pid}/children", encoding="ascii") as f:
        children = f.read().split()
    for pid in children:
        with open(f"/proc/{pid}/comm", encoding="ascii") as f:
            if f.read().strip() == "psd":
                os.kill(int(pid), signal.SIGKILL)
    code = run.wait(harness.LONG)
    expect(code not in (0, None), "a run whose psd died is a failure")


def test_killed_parent(bench):
    run = start_long_run(bench)
    os.kill(run.pid, signal.SIGKILL)
    run.expect_exit(-signal.SIGKILL)
    harness.wait_until(lambda: not bench.marked(), "the children end, too", 10)


test_killed_parent.allow_files = ("",)  # its private directory remains


def directories(bench):
    return sorted(name for name in os.listdir(bench.dir) if name.startswith("dtworker-"))


def test_what_a_killed_run_leaves_the_next_one_removes(bench):
    """Only what is provably a dead one's: not a living run's, not what has another owner, rights or content."""
    for name, mode in (("dtworker-unknown", 0o700), ("dtworker-foreign", 0o700), ("dtworker-open", 0o755)):
        os.mkdir(os.path.join(bench.dir, name))
        os.chmod(os.path.join(bench.dir, name), mode)
    for name in ("dtworker-foreign", "dtworker-open"):
        os.symlink(name, os.path.join(bench.dir, name, "locked"))
    if os.geteuid() == 0:
        os.chown(os.path.join(bench.dir, "dtworker-foreign"), 65534, -1)
    else:
        os.remove(os.path.join(bench.dir, "dtworker-foreign", "locked"))
    others = directories(bench)
    killed = start_long_run(bench)
    (left,) = set(directories(bench)) - set(others)
    harness.wait_until(lambda: any(name.endswith(".sock") for name in os.listdir(os.path.join(bench.dir, left))), "psd listens")
    with open(f"/proc/{killed.pid}/task/{killed.pid}/children", encoding="ascii") as f:
        children = [int(pid) for pid in f.read().split()]
    killed.signal(signal.SIGSTOP)  # it does not see the others end
    for pid in (*children, killed.pid):
        os.kill(pid, signal.SIGKILL)
    killed.expect_exit(-signal.SIGKILL)
    harness.wait_until(lambda: not bench.marked(), "the children have ended", 10)
    expect(any(name.endswith(".sock") for name in os.listdir(os.path.join(bench.dir, left))), "psd left its sockets")
    living = start_long_run(bench)
    expect(left not in directories(bench), f"removed: {directories(bench)}")
    expect(f"{left} is removed: its cluster was killed" in living.err(), living.err())
    with_living = directories(bench)
    bench.dtworker("run", "--model", "toy", "--steps", 3).expect_exit(0)
    expect(directories(bench) == with_living, f"the living one's stays: {directories(bench)}")
    living.signal(signal.SIGTERM)
    living.expect_exit(-signal.SIGTERM)
    expect(directories(bench) == others, f"nothing else was touched: {directories(bench)}")


harness.main(test_whole, test_two_ps_tasks, test_each_worker_computes_on_processors_of_its_own,
             test_train_computes_where_it_is_told, test_control_c, test_terminate_parent_alone, test_the_last_window_may_be_short,
             test_a_run_too_short_to_meet_the_centre_says_so_once, test_dead_child,
             test_killed_parent, test_what_a_killed_run_leaves_the_next_one_removes)
