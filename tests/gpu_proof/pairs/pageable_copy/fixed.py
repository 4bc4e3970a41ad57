"""Batches are copied to the device from pinned memory, beside what it computes."""

from tests.gpu_proof.pairs.pageable_copy.slow import parts
from tests.gpu_proof.parts import pinned


def build(device, size):
    model, batch = parts(device, size)
    batch = pinned(batch, device)

    def step():
        loss = model(batch.to(device, non_blocking=True)).square().mean()
        loss.backward()
        return loss.detach()

    return step
