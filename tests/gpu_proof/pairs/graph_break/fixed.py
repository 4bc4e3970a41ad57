"""The values are clamped without a branch."""

from tests.gpu_proof.pairs.graph_break.slow import Layer, run


class Clamped(Layer):
    def forward(self, x):
        return self.linear(x).clamp(-1, 1)


def build(device, size):
    return run(device, size, Clamped)
