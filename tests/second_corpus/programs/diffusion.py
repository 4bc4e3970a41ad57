"""A denoising diffusion model as blogs annotate it: helper functions by the dozen, and an average of the weights."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn


class Sizes:
    batch, picture, width, times = 16, 16, 32, 1000


class Losses:
    schedule_each_step = True
    noised_one_by_one = True
    average_per_parameter = True
    swish_by_hand = True


KNOWN = {
    "schedule_each_step": ("The noise schedule is computed again in each step", ["constant-rebuilt-every-step"]),
    "noised_one_by_one": ("Each picture gets its noise separately", ["python-loop-tensor-indexing"]),
    "average_per_parameter": (
        "The average of the weights is updated parameter by parameter",
        ["moving-average-per-parameter"],
    ),
    "swish_by_hand": ("The activation is two operators, which keep more memory than one", ["elementwise-op-flood"]),
}
ALSO = {
    "float32-beside-bfloat16-units": "found only on a CPU with such units, where autocast saves a quarter of a step"
}
TINY = {"batch": 2, "picture": 8, "width": 8, "times": 10}


def cosine_beta_schedule(timesteps, s=0.008):
    x = torch.linspace(0, timesteps, timesteps + 1)  # loss: schedule_each_step
    alphas_cumprod = torch.cos(((x / timesteps) + s) / (1 + s) * math.pi * 0.5) ** 2
    alphas_cumprod = alphas_cumprod / alphas_cumprod[0]
    return torch.clip(1 - (alphas_cumprod[1:] / alphas_cumprod[:-1]), 0.0001, 0.9999)


def schedule():
    betas = cosine_beta_schedule(Sizes.times)  # loss: schedule_each_step
    alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
    return torch.sqrt(alphas_cumprod), torch.sqrt(1.0 - alphas_cumprod)


def swish(x):
    return x * torch.sigmoid(x) if Losses.swish_by_hand else F.silu(x)  # loss: swish_by_hand


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        half = dim // 2
        self.register_buffer("rates", torch.exp(torch.arange(half) * -(math.log(10000) / (half - 1))))

    def forward(self, time):
        angles = time[:, None] * self.rates[None, :]
        return torch.cat((angles.sin(), angles.cos()), dim=-1)


class ResnetBlock(nn.Module):
    def __init__(self, dim, dim_out):
        super().__init__()
        self.mlp = nn.Linear(Sizes.width, dim_out)
        self.proj1, self.norm1 = nn.Conv2d(dim, dim_out, 3, padding=1), nn.GroupNorm(4, dim_out)
        self.proj2, self.norm2 = nn.Conv2d(dim_out, dim_out, 3, padding=1), nn.GroupNorm(4, dim_out)
        self.res_conv = nn.Conv2d(dim, dim_out, 1) if dim != dim_out else nn.Identity()

    def forward(self, x, time):
        h = swish(self.norm1(self.proj1(x))) + self.mlp(time)[:, :, None, None]
        return swish(self.norm2(self.proj2(h))) + self.res_conv(x)


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        width = Sizes.width
        self.time = nn.Sequential(TimeEmbedding(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList([ResnetBlock(width, width), ResnetBlock(width, 2 * width)])
        self.middle = ResnetBlock(2 * width, 2 * width)
        self.up = nn.ModuleList([ResnetBlock(4 * width, width), ResnetBlock(2 * width, width)])
        self.last = nn.Conv2d(width, 3, 1)

    def forward(self, x, time):
        x, time = self.first(x), self.time(time.float())
        kept = []
        for block in self.down:
            x = block(x, time)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.middle(x, time)
        for block in self.up:
            x = F.interpolate(x, scale_factor=2)
            x = block(torch.cat((x, kept.pop()), dim=1), time)
        return self.last(x)


def q_sample(x_start, t, noise, mean_rate, noise_rate):
    if Losses.noised_one_by_one:
        noisy = [
            mean_rate[t[i]] * x_start[i] + noise_rate[t[i]] * noise[i]  # loss: noised_one_by_one
            for i in range(len(x_start))
        ]
        return torch.stack(noisy)
    return mean_rate[t].view(-1, 1, 1, 1) * x_start + noise_rate[t].view(-1, 1, 1, 1) * noise


class Ema:
    def __init__(self, model, beta=0.995):
        self.beta, self.model, self.average = beta, model, copy.deepcopy(model).requires_grad_(False)

    def update(self):
        with torch.no_grad():
            if Losses.average_per_parameter:
                for current, average in zip(self.model.parameters(), self.average.parameters()):
                    average.copy_(average * self.beta + (1 - self.beta) * current)  # loss: average_per_parameter
            else:
                averages, currents = list(self.average.parameters()), list(self.model.parameters())
                torch._foreach_lerp_(averages, currents, 1 - self.beta)


def build():
    pictures = torch.rand(256, 3, Sizes.picture, Sizes.picture) * 2 - 1
    model = Unet()
    ema = Ema(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    once = schedule()

    def step():
        batch = pictures[torch.randint(len(pictures), (Sizes.batch,))]
        t = torch.randint(0, Sizes.times, (Sizes.batch,))
        noise = torch.randn_like(batch)
        rates = schedule() if Losses.schedule_each_step else once
        loss = F.smooth_l1_loss(model(q_sample(batch, t, noise, *rates), t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update()
        return loss.item() + ema.average.last.bias.sum().item()

    return step
