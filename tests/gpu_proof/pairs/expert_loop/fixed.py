"""Tokens are sorted by expert, and one batched product serves all, each with the same number of tokens."""

import torch

from tests.gpu_proof.pairs.expert_loop.slow import parts


def build(device, size):
    weights, tokens, choice = parts(device, size)

    @torch.inference_mode()
    def step():
        order = choice.argsort(stable=True)
        grouped = tokens[order].unflatten(0, (len(weights), -1))
        mixed = torch.empty_like(tokens)
        mixed[order] = (grouped @ weights).flatten(0, 1)
        return mixed.square().mean(0)

    return step
