"""The gradient holds the rows of the words that occur."""

from tests.gpu_proof.pairs.embedding_gradient.slow import training


def build(device, size):
    return training(device, size, sparse=True)
