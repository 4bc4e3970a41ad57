"""The model is one launch of a CUDA graph."""

from tests.gpu_proof.pairs.launch_bound_model.slow import inference
from tests.gpu_proof.parts import graphed


def build(device, size):
    return graphed(inference(device, size), device)
