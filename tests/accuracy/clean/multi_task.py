"""One trunk, three tasks with a loss each, weighted by their learned noise."""

import torch
import torch.nn.functional as F
from torch import nn


class MultiTask(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True),
            nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
        )  # fmt: skip
        self.segmentation = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(64, 5, 1))
        self.depth = nn.Conv2d(64, 1, 3, padding=1)
        self.scene = nn.Linear(64, 8)
        self.log_variance = nn.Parameter(torch.zeros(3))

    def forward(self, pictures):
        shared = self.trunk(pictures)
        return self.segmentation(shared), self.depth(shared).squeeze(1), self.scene(shared.mean(dim=(2, 3)))


def build():
    pictures = torch.randn(256, 3, 64, 64)
    classes, depths = torch.randint(5, (256, 16, 16)), torch.rand(256, 16, 16)
    scenes = torch.randint(8, (256,))
    model = MultiTask()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    averages = torch.zeros(3)

    def step() -> None:
        chosen = torch.randint(len(pictures), (16,))
        segmentation, depth, scene = model(pictures[chosen])
        losses = torch.stack([
            F.cross_entropy(segmentation, classes[chosen]),
            F.smooth_l1_loss(depth, depths[chosen]),
            F.cross_entropy(scene, scenes[chosen]),
        ])  # fmt: skip
        optimizer.zero_grad()
        (losses * torch.exp(-model.log_variance) + model.log_variance).sum().backward()
        optimizer.step()
        averages.lerp_(losses.detach(), 0.1)

    return step
