"""The same as test_fashion with two ps tasks of three shards each."""
import fashion
import harness


def test_fashion_two_ps(bench):
    fashion.train_all(bench, 2, shards=3)


harness.main(test_fashion_two_ps)
