"""The gradient of selected rows is added by `index_add_`."""

from tests.gpu_proof.pairs.index_backward.slow import training


def build(device, size):
    return training(device, size, lambda table, chosen: table.index_select(0, chosen))
