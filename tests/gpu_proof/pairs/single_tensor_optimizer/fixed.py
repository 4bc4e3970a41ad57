"""AdamW updates all parameters in one fused call."""

from tests.gpu_proof.pairs.single_tensor_optimizer.slow import model_and_inputs, training


def build(device, size):
    return training(*model_and_inputs(device, size), fused=True)
