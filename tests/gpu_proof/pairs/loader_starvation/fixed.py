"""Eight workers prepare batches ahead of the device."""

from tests.gpu_proof.pairs.loader_starvation.slow import training


def build(device, size):
    return training(device, size, 8 * size[2])
