"""Products of float32 run as TF32."""

from tests.gpu_proof.pairs.fp32_without_tf32.slow import trained


def build(device, size):
    return trained(device, size, tf32=True)
