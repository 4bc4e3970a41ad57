"""Data-parallel training in two processes: gradients averaged in buckets during the backward pass."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS = 2


def build():
    torch.manual_seed(torch.distributed.get_rank())
    model = nn.Sequential(
        nn.Linear(256, 384),
        nn.GELU(),
        nn.Linear(384, 384),
        nn.GELU(),
        nn.Linear(384, 384),
        nn.GELU(),
        nn.Linear(384, 10),
    )
    parallel = DistributedDataParallel(model, bucket_cap_mb=0.5, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(parallel.parameters(), lr=1e-3, fused=True)
    inputs, targets = torch.randn(8192, 256), torch.randint(10, (8192,))

    def step() -> None:
        chosen = torch.randint(len(inputs), (768,))
        loss = F.cross_entropy(parallel(inputs[chosen]), targets[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
