"""The host goes on while the device copies from pinned memory."""

import torch

from tests.gpu_proof.pairs.blocking_copy.slow import parts


def build(device, size):
    model, batches = parts(device, size)

    @torch.inference_mode()
    def step():
        return torch.stack([model(batch.to(device, non_blocking=True)).mean() for batch in batches])

    return step
