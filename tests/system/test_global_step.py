"""The global step of an asynchronous job: a worker that waits for step N begins after it, begins when nobody is
there to bring it, and does not hold up an end."""
import signal
import time

import harness
from asynchronous import expect_done, kill, start, step_of, wait_for_step
from harness import expect


def waits(psd):
    return [w for w in psd.job()["waiting"] if w["reason"] == "global_step"]


def when_it_stands(psd):
    """The step once all that was sent has arrived."""
    while True:
        before = step_of(psd)
        time.sleep(0.3)
        if step_of(psd) == before:
            return before


def test_begins_after_the_step(bench):
    """The first one is stopped before step N: the second must wait for as long as that takes."""
    psd = bench.psd(shards=2)
    second = start(bench, psd, 1, 2, "--steps", 30, "--wait-for-step", 300)
    first = start(bench, psd, 0, 2, "--steps", 330, "--step-delay", 10)
    harness.wait_until(lambda: step_of(psd) >= 9 and waits(psd), "one trains, the other waits")
    first.signal(signal.SIGSTOP)
    before = when_it_stands(psd)
    expect(before < 300, f"step {before}")
    time.sleep(1)
    expect(step_of(psd) == before, f"nobody takes a step: {before}, {step_of(psd)}")
    expect(waits(psd)[0]["rank"] == 1 and waits(psd)[0]["step"] == 300, f"status tells it: {waits(psd)}")
    shown = psd.psctl("status")
    expect(shown.returncode == 0 and "rank 1 waits for global step 300" in shown.stdout, shown.stdout + shown.stderr)
    first.signal(signal.SIGCONT)
    expect_done(first, 330)
    expect_done(second, 30)
    expect(psd.job()["state"] == "complete" and psd.job()["step"] == 360, f"{psd.job()}")
    psd.stop()


def test_a_step_that_has_come_is_not_waited_for(bench):
    psd = bench.psd(shards=2)
    first = start(bench, psd, 0, 2, "--steps", 100000, "--step-delay", 10)
    wait_for_step(psd, 30)
    second = start(bench, psd, 1, 2, "--steps", 9, "--wait-for-step", 30)
    expect_done(second, 9)
    expect(first.is_alive(), "at once")
    expect("will not come" not in second.err(), second.err())
    first.signal(signal.SIGTERM)
    first.expect_exit(-signal.SIGTERM)
    psd.stop()


def test_nobody_is_there_to_bring_it(bench):
    """The other one ends, or is killed, long before step N: the waiting one begins then."""
    psd = bench.psd(shards=2)
    for end, name in (("done", "a"), ("killed", "b")):
        first = start(bench, psd, 0, 2, "--steps", 30 if end == "done" else 100000, "--step-delay", 10, "--lease", "1", job=name)
        second = start(bench, psd, 1, 2, "--steps", 30, "--wait-for-step", 100000, "--lease", "1", job=name)
        if end == "killed":
            wait_for_step(psd, 9, name)
            kill(first)
        else:
            expect_done(first, 30)
        expect_done(second, 30)
        expect("--wait-for-step 100000 will not come" in second.err(), f"the worker says it: {second.err()}")
        harness.wait_until(lambda name=name: psd.job(name)["state"] == "complete", f"job {name} is complete")
    expect("nobody is there to bring the global step to 100000" in psd.err(), "psd says why")
    psd.stop()


def test_the_others_stop_before(bench):
    """The target is reached before step N: the waiting one is told, takes a window, and stops as well."""
    psd = bench.psd(shards=2)
    first = start(bench, psd, 0, 2, "--steps", 100000, "--target-accuracy", "0.7")
    second = start(bench, psd, 1, 2, "--steps", 100000, "--wait-for-step", 1000000)
    first.expect_exit(0)
    second.expect_exit(0)
    expect(second.json()["steps"] == 3, f"one window: {second.json()}")
    expect(psd.job()["state"] == "complete", f"{psd.job()}")
    psd.stop()


harness.main(test_begins_after_the_step, test_a_step_that_has_come_is_not_waited_for, test_nobody_is_there_to_bring_it,
             test_the_others_stop_before)
