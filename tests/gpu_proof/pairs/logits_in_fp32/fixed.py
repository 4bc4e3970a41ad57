"""The product runs in bfloat16, the loss in float32."""

from tests.gpu_proof.pairs.logits_in_fp32.slow import losses, parts


def build(device, size):
    head, rows, labels = parts(device, size)
    return losses(head, labels, lambda: head(rows).float())
