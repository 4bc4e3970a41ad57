"""Each token is one launch of a CUDA graph."""

from tests.gpu_proof.pairs.decode_without_graph.slow import generating, one_token
from tests.gpu_proof.parts import graphed


def build(device, size):
    decoded, token = one_token(device, size)
    first = token.clone()
    replayed = graphed(decoded, device)
    token.copy_(first)  # capturing has run the model
    return generating(replayed)
