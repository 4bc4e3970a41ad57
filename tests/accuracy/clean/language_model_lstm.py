"""A word-level LSTM language model with truncated backpropagation: the state is passed on, detached."""

import torch
import torch.nn.functional as F
from torch import nn


class LanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, 64)
        self.lstm = nn.LSTM(64, 96, num_layers=2, batch_first=True, dropout=0.2)
        self.head = nn.Linear(96, 1000)

    def forward(self, tokens, state):
        hidden, state = self.lstm(self.embedding(tokens), state)
        return self.head(hidden), state


def build():
    text = torch.randint(1000, (16, 3201))
    model = LanguageModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
    state = None
    starts = iter(range(0, 3200, 32))

    def step() -> None:
        nonlocal state
        at = next(starts)
        tokens, targets = text[:, at : at + 32], text[:, at + 1 : at + 33]
        logits, (hidden, cell) = model(tokens, state)
        state = (hidden.detach(), cell.detach())
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()

    return step
