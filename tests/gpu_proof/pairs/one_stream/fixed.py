"""The next batch is copied on a stream of its own beside the computation."""

import contextlib

import torch

from tests.gpu_proof.pairs.one_stream.slow import parts


def build(device, size):
    model, batches = parts(device, size)
    side = torch.cuda.Stream() if device == "cuda" else None

    def copied(batch):
        with torch.cuda.stream(side) if side else contextlib.nullcontext():
            return batch.to(device, non_blocking=True)

    @torch.inference_mode()
    def step():
        results, ahead = [], copied(batches[0])
        for at in range(len(batches)):
            if side:
                torch.cuda.current_stream().wait_stream(side)
                ahead.record_stream(torch.cuda.current_stream())
            batch = ahead
            if at + 1 < len(batches):
                ahead = copied(batches[at + 1])
            results.append(model(batch).mean())
        return torch.stack(results)

    return step
