"""Log spectrograms of a batch of sounds, and a convolutional network on them with masked bands."""

import torch
import torch.nn.functional as F
from torch import nn


class Spectrogram(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(256))
        self.register_buffer("filters", torch.rand(129, 40) / 129)

    def forward(self, sound):
        spectrum = torch.stft(sound, 256, hop_length=128, window=self.window, return_complex=True)
        return (spectrum.abs().square().transpose(1, 2) @ self.filters).clamp_(min=1e-6).log_().unsqueeze(1)


def masked(bands: torch.Tensor) -> torch.Tensor:
    """A band of frequencies of each sound is left out."""
    first = torch.randint(32, (len(bands), 1))
    number = torch.arange(bands.shape[-1])
    hidden = (number >= first) & (number < first + 8)
    return bands.masked_fill(hidden[:, None, None], 0.0)


def build():
    sounds, labels = torch.randn(256, 8000), torch.randint(12, (256,))
    front = Spectrogram()
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True),
        nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def step() -> None:
        chosen = torch.randint(len(sounds), (32,))
        with torch.no_grad():
            bands = masked(front(sounds[chosen]))
        optimizer.zero_grad()
        F.cross_entropy(model(bands), labels[chosen]).backward()
        optimizer.step()

    return step
