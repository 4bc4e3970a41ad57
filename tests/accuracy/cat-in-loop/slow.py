"""A long recording is denoised window by window; the result grows with each window."""

import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.wide = nn.Conv1d(channels, channels, 3, padding=1)
        self.deep = nn.Conv1d(channels, channels, 3, padding=1)

    def forward(self, window):
        return self.deep(torch.relu(self.wide(window)))


@torch.inference_mode()
def denoised(model, windows):
    sound = torch.empty(1, 48, 0)
    for window in windows:
        sound = torch.cat([sound, model(window)], dim=-1)
    return sound


def build():
    model = Denoiser(48).eval()
    windows = list(torch.randn(48, 1, 48, 512))

    def step():
        return denoised(model, windows).abs().amax()

    return step
