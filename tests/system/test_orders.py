"""Random push and pull orders of 64 slices by 4 workers with a window of 8: none blocks."""
import os

import harness

N = os.environ.get("PSD_ORDERS", "1000")


def test_orders(bench):
    for shards, n in ((3, N), (1, str(int(N) // 4))):
        psd = bench.psd(ipc=True, shards=shards, window=8)
        bench.start("orders", [harness.program("orders"), psd.endpoint, n, str(shards)]).expect_exit(0, 700)
        psd.stop()


harness.main(test_orders)
