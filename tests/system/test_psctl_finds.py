"""psctl without --admin: it takes the one psd that is alive, whatever sockets killed ones have left."""
import os
import signal
import subprocess

import harness
from harness import expect


def directory(bench):
    path = os.path.join(bench.dir, "psd")
    os.makedirs(path, exist_ok=True)
    return path


def psctl(bench, *args):
    """Where a user's psctl looks; for root that directory stands in place of /run/psd, for this process alone."""
    argv = [harness.program("psctl"), *args]
    if os.geteuid() == 0:
        script = 'mount -t tmpfs none /run && mkdir /run/psd && mount --bind "$0" /run/psd && exec "$@"'
        argv = ["unshare", "--mount", "sh", "-c", script, directory(bench), *argv]
    done = subprocess.run(argv, capture_output=True, text=True, env=bench.env, timeout=harness.LONG, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        raise harness.Skipped(f"psctl finds: no mount namespace here: {done.stderr.strip()}")
    return done


def start(bench, name):
    psd = bench.psd(wait=False, shards=1, flags=("--admin", f"ipc://{directory(bench)}/{name}.sock"))
    psd.admin = f"ipc://{directory(bench)}/{name}.sock"
    psd.wait_ready()
    return psd


def kill(psd):
    psd.signal(signal.SIGKILL)
    psd.expect_exit(-signal.SIGKILL)


def test_one_of_them_is_alive(bench):
    expect("there is no admin socket in" in psctl(bench, "status").stderr, "nothing is there yet")
    gone, alive = start(bench, "gone"), start(bench, "alive")
    both = psctl(bench, "status")
    expect(both.returncode == 64 and "gone.sock" in both.stderr and "alive.sock" in both.stderr, both.stderr)
    kill(gone)
    one = psctl(bench, "status")
    expect(one.returncode == 0, f"the dead one does not count: {one.stderr}")
    expect("1 shard, 0 sessions, 0 jobs\n" in one.stdout, one.stdout)
    bench.train(alive, 0, 1, "--steps", 3).expect_exit(0)
    one = psctl(bench, "status").stdout
    expect(", 1 job\n" in one and "1 worker expected\n" in one, one)
    third = start(bench, "third")
    both = psctl(bench, "status")
    expect(both.returncode == 64 and "several psds run here" in both.stderr, both.stderr)
    expect("alive.sock" in both.stderr and "third.sock" in both.stderr and "gone.sock" not in both.stderr, both.stderr)
    kill(alive)
    kill(third)
    none = psctl(bench, "status")
    expect(none.returncode == 69 and "nobody listens on any of the admin sockets" in none.stderr, none.stderr)


test_one_of_them_is_alive.allow_files = (r"^psd/\w+\.sock",)  # of those that were killed

harness.main(test_one_of_them_is_alive)
