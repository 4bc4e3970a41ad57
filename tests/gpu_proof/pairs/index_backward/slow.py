"""`index_put_` sorts and sums the gradient of an indexed table."""

import torch

RULE = ""
CAUSE = "compute"
TOLERANCE = 1e-3
SIZES = {
    "tiny": (8, 4, 16),
    "small": (1024, 64, 4096),
    "middle": (65536, 128, 262144),
    "large": (1048576, 128, 2097152),
}


def training(device, size, lookup):
    rows, width, picked = size
    table = torch.randn(rows, width, device=device, requires_grad=True)
    chosen = torch.randint(rows, (picked,)).to(device)

    def step():
        table.grad = None
        lookup(table, chosen).square().mean().backward()
        return table.grad.square().sum()

    return step


def build(device, size):
    return training(device, size, lambda table, chosen: table[chosen])
