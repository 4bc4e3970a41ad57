"""A denoising network with time embedding; the noise schedule is computed once and kept in buffers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

TIMES = 1000


class TimeBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, inputs), nn.GroupNorm(8, outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(64, outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        return self.conv2(F.silu(self.norm2(y))) + self.shortcut(x)


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU())
        self.first = nn.Conv2d(3, 24, 3, padding=1)
        self.down = TimeBlock(24, 24)
        self.shrink = nn.Conv2d(24, 48, 3, stride=2, padding=1)
        self.middle = TimeBlock(48, 48)
        self.grow = nn.ConvTranspose2d(48, 24, 2, stride=2)
        self.up = TimeBlock(48, 24)
        self.last = nn.Conv2d(24, 3, 3, padding=1)
        frequencies = torch.exp(-math.log(10_000) * torch.arange(32) / 32)
        angles = torch.arange(TIMES).unsqueeze(1) * frequencies
        self.register_buffer("embeddings", torch.cat([angles.sin(), angles.cos()], dim=1))

    def forward(self, x, times):
        time = self.time(self.embeddings[times])
        wide = self.down(self.first(x), time)
        deep = self.middle(self.shrink(wide), time)
        return self.last(self.up(torch.cat([self.grow(deep), wide], dim=1), time))


def build():
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, TIMES), dim=0)
    signal, noise_level = kept.sqrt(), (1 - kept).sqrt()
    pictures = torch.rand(512, 3, 32, 32) * 2 - 1
    model = Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)

    def step() -> None:
        clean = pictures[torch.randint(len(pictures), (8,))]
        times = torch.randint(TIMES, (len(clean),))
        noise = torch.randn_like(clean)
        noisy = signal[times, None, None, None] * clean + noise_level[times, None, None, None] * noise
        optimizer.zero_grad()
        F.mse_loss(model(noisy, times), noise).backward()
        optimizer.step()

    return step
