"""Train a small residual network on synthetic images. `--profile` records a trace in this folder."""

import argparse
import random
import statistics
import time
import zlib
from collections.abc import Callable
from itertools import islice, pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Adam, Optimizer
from torch.profiler import profile, schedule, tensorboard_trace_handler
from torch.utils.data import DataLoader, Dataset

CLASSES = 10
BATCH_SIZE = 48
MEAN = torch.tensor([0.48, 0.46, 0.41]).view(3, 1, 1)
STD = torch.tensor([0.25, 0.24, 0.26]).view(3, 1, 1)


class StripedImages(Dataset[tuple[Tensor, int]]):
    """Compressed pictures of coloured stripes under noise; the class is the direction of the stripes."""

    def __init__(self, count: int = 2048, stored_size: int = 112, size: int = 32) -> None:
        self.stored_size, self.size = stored_size, size
        self.labels = torch.randint(CLASSES, (count,)).tolist()
        self.files = [self.draw(torch.tensor(label * torch.pi / CLASSES)) for label in self.labels]

    def draw(self, angle: Tensor) -> bytes:
        axis = torch.linspace(0, 6.3, self.stored_size)
        stripes = torch.sin(4 * (axis * angle.cos() + axis.unsqueeze(1) * angle.sin())) * torch.rand(3, 1, 1)
        noise = torch.randint(64, (3, self.stored_size, self.stored_size))
        return zlib.compress((stripes * 60 + 80 + noise).byte().numpy().tobytes(), level=1)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        pixels = torch.frombuffer(bytearray(zlib.decompress(self.files[index])), dtype=torch.uint8)
        image = pixels.view(3, self.stored_size, self.stored_size).float() / 255
        side = random.randint(self.size, self.stored_size)
        top, left = random.randint(0, self.stored_size - side), random.randint(0, self.stored_size - side)
        crop = image[None, :, top : top + side, left : left + side]
        image = F.interpolate(crop, (self.size, self.size), mode="bilinear", antialias=True)[0]
        image = image * random.uniform(0.7, 1.3)
        grey = image.mean(dim=0, keepdim=True)
        image = grey + (image - grey) * random.uniform(0.6, 1.4)
        image = image + torch.randn_like(image) * 0.02
        return (image.clamp(0, 1) - MEAN) / STD, self.labels[index]


class ResidualBlock(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.shortcut = nn.Identity() if stride == 1 else nn.AvgPool2d(stride)
        self.extra_channels = out_channels - in_channels

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        shortcut = F.pad(self.shortcut(x), (0, 0, 0, 0, 0, self.extra_channels))
        return F.relu(self.bn2(self.conv2(out)) + shortcut)


def build_model() -> nn.Module:
    stem = [nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    blocks = [ResidualBlock(*shape) for shape in [(16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2)]]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES))


def mix_up(images: Tensor, order: Tensor, weights: Tensor) -> Tensor:
    """Blend each image with another one of the batch (Zhang et al., 2018)."""
    return images[order].lerp(images, weights.view(-1, 1, 1, 1))


def count_confusions(confusions: Tensor, labels: Tensor, logits: Tensor) -> None:
    cells = labels * CLASSES + logits.argmax(dim=1)
    confusions.view(-1).add_(torch.bincount(cells, minlength=confusions.numel()))


def train_step(model: nn.Module, optimizer: Optimizer, images: Tensor, labels: Tensor, confusions: Tensor) -> float:
    weights = torch.distributions.Beta(0.4, 0.4).sample((len(images),))
    order = torch.randperm(len(images))
    optimizer.zero_grad()
    logits = model(mix_up(images, order, weights))
    own_loss, other_loss = (F.cross_entropy(logits, part, reduction="none") for part in (labels, labels[order]))
    loss = (weights * own_loss + (1 - weights) * other_loss).mean()
    loss.backward()
    optimizer.step()
    count_confusions(confusions, labels, logits.detach())
    return loss.item()


def train(steps: int, after_step: Callable[[], None]) -> None:
    loader = DataLoader(StripedImages(), batch_size=BATCH_SIZE, shuffle=True, num_workers=2, persistent_workers=True)
    model = build_model()
    optimizer = Adam(model.parameters(), lr=2e-3, fused=True)
    confusions = torch.zeros(CLASSES, CLASSES, dtype=torch.long)
    losses, step_ends = [], [time.perf_counter()]
    for images, labels in islice(loader, steps):
        losses.append(train_step(model, optimizer, images, labels, confusions))
        after_step()
        step_ends.append(time.perf_counter())
    step_ms = [1000 * (end - start) for start, end in pairwise(step_ends)]
    median_ms = statistics.median(step_ms[5:] or step_ms)
    accuracy = confusions.diagonal().sum() / confusions.sum()
    print(f"loss {losses[-1]:.3f}, accuracy {accuracy:.3f}, median step {median_ms:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    random.seed(0)
    torch.set_num_threads(1)
    if not arguments.profile:
        train(arguments.steps, after_step=lambda: None)
        return
    with profile(
        schedule=schedule(wait=1, warmup=1, active=3),
        on_trace_ready=tensorboard_trace_handler(".", "workstation", use_gzip=True),
        record_shapes=True,
        with_stack=True,
    ) as profiler:
        train(steps=5, after_step=profiler.step)


if __name__ == "__main__":
    main()
