"""A mixture of four experts: each processes its tokens in turn."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, EXPERTS = 128, 4


class Mixture(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)) for _ in range(EXPERTS)
        )

    def forward(self, x):
        tokens = x.flatten(0, 1)
        weights, chosen = self.gate(tokens).softmax(dim=-1).topk(2, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        mixed = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            token, place = torch.where(chosen == number)
            mixed.index_add_(0, token, expert(tokens[token]) * weights[token, place].unsqueeze(1))
        return x + mixed.view_as(x)


def build():
    sequences, labels = torch.randn(512, 32, WIDTH), torch.randint(10, (512,))
    norm, mixture, head = nn.LayerNorm(WIDTH), Mixture(), nn.Linear(WIDTH, 10)
    model = nn.Sequential(norm, mixture, nn.LayerNorm(WIDTH))
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-3, fused=True)

    def step() -> None:
        chosen = torch.randint(len(sequences), (16,))
        loss = F.cross_entropy(head(model(sequences[chosen]).mean(dim=1)), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
