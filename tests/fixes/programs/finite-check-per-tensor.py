"""Training that looks for gradients that are not finite, and names the first of them."""

import torch
from torch import nn


def hold_finite(model):
    for name, parameter in model.named_parameters():
        if parameter.grad is None:
            continue
        if not torch.isfinite(parameter.grad).all():
            raise ValueError(
                f"{name} has a gradient that is not finite",  # the first one is enough
            )


def build():
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(12)), nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    batch, wanted = torch.randn(32, 64), torch.randint(8, (32,))

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), wanted)
        loss.backward()
        hold_finite(model)
        optimizer.step()
        return loss.detach()

    return step
