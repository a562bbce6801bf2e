"""As on several hosts: one psd, two dtworkers over tcp, in either order and with a delay; the model is
saved and evaluated; psd stops on TERM."""
import os

import harness
from harness import expect

TRAIN = ("--epochs", 10, "--batch", 50, "--lr", "0.5", "--seed", 7)


def finish(bench, psd, workers, model):
    for w in workers:
        w.expect_exit(0)
    result = workers[0].json()
    expect(result["steps"] == 150, f"steps {result['steps']}, expected 10 epochs of 1500/(2*50)")
    expect(result["test_accuracy"] > 0.85, f"test accuracy {result['test_accuracy']}")
    expect(result["stale_dropped"] == 0 and result["unseen_rows"] == 0, f"dropped something: {result}")
    expect(os.path.getsize(model) > 65 * 10 * 4, "the saved model holds 65 x 10 floats")
    evaluated = bench.dtworker("eval", "--model-file", model, "--data", harness.digits(), "--json")
    evaluated.expect_exit(0)
    accuracy = evaluated.json()["test_accuracy"]
    expect(abs(accuracy - result["test_accuracy"]) < 1e-9, f"eval says {accuracy}, train {result['test_accuracy']}")
    job = psd.job()
    expect(job["state"] == "complete" and job["step"] == 150, f"job {job['state']} at step {job['step']}")
    expect(job["counters"]["stale"] == 0, "nothing is stale with a quorum of all")
    psd.stop()


def test_psd_first(bench):
    model = os.path.join(bench.dir, "w.safetensors")
    psd = bench.psd(shards=3)
    args = ("--data", harness.digits(), *TRAIN, "--json")
    first = bench.train(psd, 1, 2, *args, model="softmax")
    harness.wait_until(lambda: any(j["members"] for j in psd.status()["jobs"]), "the first one is there")
    second = bench.train(psd, 0, 2, *args, "--save", model, model="softmax")
    finish(bench, psd, [second, first], model)


def test_workers_first(bench):
    model = os.path.join(bench.dir, "w.safetensors")
    endpoint = f"tcp://127.0.0.1:{harness.free_port()}"
    args = ("--data", harness.digits(), *TRAIN, "--json")
    workers = [bench.train(endpoint, 0, 2, *args, "--save", model, model="softmax"),
               bench.train(endpoint, 1, 2, *args, model="softmax")]
    harness.wait_until(lambda: all(endpoint in w.err() for w in workers), f"the waiting workers name {endpoint}")
    expect(all(w.is_alive() for w in workers), "they wait for a psd that is not there yet")
    psd = bench.psd(endpoint=endpoint, shards=1)
    finish(bench, psd, workers, model)


harness.main(test_psd_first, test_workers_first)
