"""Fine-tuning: a frozen backbone without gradients, and a trained head."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    backbone = nn.Sequential(
        nn.Conv2d(3, 32, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True),
        nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
        nn.Conv2d(64, 128, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(128), nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip
    backbone.eval().requires_grad_(False)
    head = nn.Sequential(nn.Dropout(0.2), nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 5))
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3, fused=True)
    pictures, labels = torch.randn(1024, 3, 64, 64), torch.randint(5, (1024,))
    done = 0

    def step() -> None:
        nonlocal done
        chosen = torch.randint(len(pictures), (32,))
        with torch.no_grad():
            features = backbone(pictures[chosen])
        loss = F.cross_entropy(head(features), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
        if done % 50 == 0:
            print(f"step {done}: {loss.item():.3f}")  # noqa: T201

    return step
