"""The rotary embedding is compiled into one kernel."""

from tests.gpu_proof.pairs.rotary_by_hand.slow import embedded, embedding
from tests.gpu_proof.parts import compiled


def build(device, size):
    return embedding(device, size, compiled(embedded, device))
