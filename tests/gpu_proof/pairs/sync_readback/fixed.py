"""Training adds the losses up on the device."""

from tests.gpu_proof.pairs.sync_readback.slow import parts


def build(device, size):
    model, batches = parts(device, size)

    def step():
        total = 0.0
        model.zero_grad()
        for batch in batches:
            loss = model(batch).square().mean()
            loss.backward()
            total = total + loss.detach()
        return total

    return step
