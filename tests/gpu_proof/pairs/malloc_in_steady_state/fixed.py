"""The allocator keeps its memory."""

from tests.gpu_proof.pairs.malloc_in_steady_state.slow import trained


def build(device, size):
    return trained(device, size)
