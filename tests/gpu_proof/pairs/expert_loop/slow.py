"""A loop over experts reads the token count of each."""

import torch

RULE = "host-sync-scalar-readback"
CAUSE = "synchronisation"
TOLERANCE = 1e-3
SIZES = {"tiny": (4, 8, 16), "small": (16, 128, 512), "middle": (32, 1024, 8192), "large": (64, 2048, 65536)}


def parts(device, size):
    experts, width, tokens = size
    weights = torch.randn(experts, width, width, device=device) / width**0.5
    choice = (torch.randperm(tokens) % experts).to(device)
    return weights, torch.randn(tokens, width, device=device), choice


def build(device, size):
    weights, tokens, choice = parts(device, size)

    @torch.inference_mode()
    def step():
        mixed = torch.zeros_like(tokens)
        for expert, weight in enumerate(weights):
            own = (choice == expert).nonzero().squeeze(-1)
            mixed[own] = tokens[own] @ weight
        return mixed.square().mean(0)

    return step
