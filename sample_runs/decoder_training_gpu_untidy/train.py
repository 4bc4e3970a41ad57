"""Train a small decoder on made-up text, with anti-patterns on purpose. `--profile` records a trace in this folder."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import profile, schedule, tensorboard_trace_handler

SIZES = {"cuda": (768, 8, 8, 512, 50257), "cpu": (64, 2, 2, 32, 257)}  # width, layers, batch, length, words


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        variance = x.float().pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + 1e-6)).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(width // 64, 1)
        self.to_qkv, self.to_out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.to_qkv(x).chunk(3, dim=-1))
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1).to(x.device)
        scores = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(future, float("-inf"))
        return self.to_out((scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(-2))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2, self.attention = RMSNorm(width), RMSNorm(width), Attention(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Trainer:
    def __init__(self, device: str) -> None:
        width, layers, self.batch, self.length, self.words = SIZES[device]
        blocks = (Block(width) for _ in range(layers))
        model = nn.Sequential(nn.Embedding(self.words, width), *blocks, RMSNorm(width), nn.Linear(width, self.words))
        self.device, self.model = device, model.to(device)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=False)

    def step(self) -> float:
        texts = torch.randint(self.words, (self.batch, self.length + 1)).to(self.device)
        self.optimizer.zero_grad(set_to_none=False)
        logits = self.model(texts[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), texts[:, 1:].flatten())
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--device", choices=SIZES, default="cuda")
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    trainer = Trainer(arguments.device)
    if not arguments.profile:
        start = time.perf_counter()
        losses = [trainer.step() for _ in range(arguments.steps)]
        print(f"loss {losses[-1]:.3f}, mean step {1000 * (time.perf_counter() - start) / len(losses):.1f} ms")
        return
    with profile(
        schedule=schedule(wait=1, warmup=1, active=3),
        on_trace_ready=tensorboard_trace_handler(".", "workstation", use_gzip=True),
        record_shapes=True,
        with_stack=True,
    ) as profiler:
        for _ in range(5):
            trainer.step()
            profiler.step()


if __name__ == "__main__":
    main()
