"""Each layer computes a table of positions again."""

import torch

RULE = "constant-rebuilt-every-step"
CAUSE = "compute"
SIZES = {"tiny": (8, 8), "small": (128, 64), "middle": (1024, 512), "large": (8192, 2048)}
LAYERS = 8


def table(length, width, device):
    places = torch.arange(length, device=device).unsqueeze(1)
    speeds = torch.exp(torch.arange(0, width, 2, device=device) * (-9.2 / width))
    return torch.cat((torch.sin(places * speeds), torch.cos(places * speeds)), -1)


def build(device, size):
    length, width = size
    inputs = torch.randn(4, length, width, device=device)

    @torch.inference_mode()
    def step():
        x = inputs
        for _ in range(LAYERS):
            x = torch.relu(x + table(length, width, device))
        return x.mean((1, 2))

    return step
