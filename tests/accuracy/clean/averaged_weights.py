"""Self-supervised learning with a teacher whose weights follow the student's, all in one call."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


def build():
    body = [nn.Linear(192, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 256), nn.BatchNorm1d(256), nn.ReLU()]
    student = nn.Sequential(*body, nn.Linear(256, 128))
    teacher = copy.deepcopy(student).requires_grad_(False)
    predictor = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 128))
    ours, theirs = list(student.parameters()), list(teacher.parameters())
    optimizer = torch.optim.AdamW([*ours, *predictor.parameters()], lr=1e-3, fused=True)
    data = torch.randn(4096, 192)

    def view(batch: torch.Tensor) -> torch.Tensor:
        return F.dropout(batch, 0.2) + 0.1 * torch.randn_like(batch)

    def step() -> None:
        batch = data[torch.randint(len(data), (512,))]
        with torch.no_grad():
            target = teacher(view(batch))
        loss = -F.cosine_similarity(predictor(student(view(batch))), target).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(theirs, ours, 0.01)

    return step
