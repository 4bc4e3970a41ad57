"""A variational autoencoder under autocast to bfloat16."""

import torch
import torch.nn.functional as F
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, 512), nn.GELU(), nn.Linear(512, 256), nn.GELU())
        self.moments = nn.Linear(256, 2 * 32)
        self.decoder = nn.Sequential(nn.Linear(32, 256), nn.GELU(), nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 784))

    def forward(self, x):
        mean, log_variance = self.moments(self.encoder(x)).float().chunk(2, dim=1)
        code = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(code), mean, log_variance


def build():
    pictures = torch.rand(4096, 784)
    model = Autoencoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def step() -> None:
        batch = pictures[torch.randint(len(pictures), (256,))]
        with torch.autocast("cpu", torch.bfloat16):
            logits, mean, log_variance = model(batch)
        reconstruction = F.binary_cross_entropy_with_logits(logits.float(), batch, reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mean.square() - log_variance.exp())
        optimizer.zero_grad()
        ((reconstruction + divergence) / len(batch)).backward()
        optimizer.step()

    return step
