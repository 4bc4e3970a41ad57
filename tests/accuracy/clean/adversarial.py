"""A generative adversarial network: two networks, two optimizers, generated pictures detached for the critic."""

import torch
import torch.nn.functional as F
from torch import nn


def build():
    generator = nn.Sequential(
        nn.ConvTranspose2d(64, 64, 4, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(inplace=True),
        nn.ConvTranspose2d(32, 3, 4, stride=2, padding=1),
        nn.Tanh(),
    )
    critic = nn.Sequential(
        nn.Conv2d(3, 32, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(32, 64, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Flatten(),
        nn.Linear(64 * 16, 1),
    )
    pictures = torch.rand(512, 3, 16, 16) * 2 - 1
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=True)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=True)
    real, made_up = torch.ones(48, 1), torch.zeros(48, 1)

    def step() -> None:
        batch = pictures[torch.randint(len(pictures), (48,))]
        fakes = generator(torch.randn(48, 64, 1, 1))

        critic_optimizer.zero_grad()
        on_real = F.binary_cross_entropy_with_logits(critic(batch), real)
        on_fakes = F.binary_cross_entropy_with_logits(critic(fakes.detach()), made_up)
        (on_real + on_fakes).backward()
        critic_optimizer.step()

        generator_optimizer.zero_grad()
        critic.requires_grad_(False)
        F.binary_cross_entropy_with_logits(critic(fakes), real).backward()
        critic.requires_grad_(True)
        generator_optimizer.step()

    return step
