"""A small residual network, trained on augmented pictures from two worker processes."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, count: int) -> None:
        self.pixels = torch.randint(256, (count, 3, 40, 40), dtype=torch.uint8)
        self.labels = torch.randint(10, (count,))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        top, left = torch.randint(9, (2,)).tolist()
        crop = self.pixels[index, :, top : top + 32, left : left + 32]
        return crop.float().div_(255), self.labels[index]


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x), inplace=True)


def build():
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        Residual(16, 16, 1),
        Residual(16, 32, 2),
        Residual(32, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    ).to(memory_format=torch.channels_last)
    loader = DataLoader(Pictures(4096), batch_size=32, shuffle=True, num_workers=2, persistent_workers=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=1000)
    loss_of = nn.CrossEntropyLoss(label_smoothing=0.1)
    batches = iter(loader)

    def step() -> None:
        pictures, labels = next(batches)
        pictures = pictures.to(memory_format=torch.channels_last)
        optimizer.zero_grad()
        loss_of(model(pictures), labels).backward()
        optimizer.step()
        schedule.step()

    return step
