"""Pictures augmented as one batch: random crops and rotations by one sampling grid, colours by one product."""

import torch
import torch.nn.functional as F
from torch import nn


@torch.no_grad()
def augmented(pictures: torch.Tensor) -> torch.Tensor:
    count = len(pictures)
    angle, scale = (torch.rand(count) - 0.5) * 0.6, 0.8 + 0.2 * torch.rand(count)
    cosine, sine = angle.cos() * scale, angle.sin() * scale
    shift = (torch.rand(2, count) - 0.5) * 0.2
    affine = torch.stack([cosine, -sine, shift[0], sine, cosine, shift[1]], dim=1).view(count, 2, 3)
    grid = F.affine_grid(affine, list(pictures.shape), align_corners=False)
    turned = F.grid_sample(pictures, grid, align_corners=False, padding_mode="reflection")
    brightness = 0.8 + 0.4 * torch.rand(count, 1, 1, 1)
    return turned.mul_(brightness).clamp_(0, 1)


def build():
    pictures, labels = torch.rand(1024, 3, 32, 32), torch.randint(10, (1024,))
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, stride=2, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(32, 64, 3, stride=2, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(64, 64, 3, stride=2, padding=1),
        nn.ReLU(inplace=True),
        nn.Flatten(),
        nn.Linear(64 * 16, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, fused=True)

    def step() -> None:
        chosen = torch.randint(len(pictures), (64,))
        optimizer.zero_grad()
        F.cross_entropy(model(augmented(pictures[chosen])), labels[chosen]).backward()
        optimizer.step()

    return step
