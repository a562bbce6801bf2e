"""Each algorithm with its own rates reaches 0.80 on Fashion-MNIST in 5 epochs, mlp:128 0.85: one ps task."""
import fashion
import harness


def test_fashion(bench):
    fashion.train_all(bench, 1)


harness.main(test_fashion)
