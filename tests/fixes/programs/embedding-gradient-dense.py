"""Vectors of words, learned from which words stand together; a batch holds few of all words."""

import torch
from torch import nn
from torch.nn import functional


def build():
    words = nn.Embedding(
        50_000,
        64,  # as in the paper
    )
    optimizer = torch.optim.SGD(words.parameters(), lr=0.5)
    near = torch.randint(50_000, (2, 256))

    def step():
        optimizer.zero_grad()
        one, other = words(near).unbind(0)
        loss = functional.softplus(-(one * other).sum(-1)).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
