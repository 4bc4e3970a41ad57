"""A layer of a graph network that reads the ends of all edges by their indices, with two threads."""

import torch
from torch import nn


class Edges(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(2 * width, width)

    def forward(self, nodes, ends):
        pairs = torch.cat([nodes[ends[0]], nodes[ends[1]]], dim=-1)
        return torch.zeros_like(nodes).index_add(0, ends[1], torch.relu(self.mix(pairs)))


class Table(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.rows = nn.Parameter(torch.randn(rows, width))

    def forward(self, picked):
        return self.rows[picked].mean(1)


def build():
    torch.set_num_threads(2)
    table, edges = Table(4000, 64), Edges(64)
    optimizer = torch.optim.SGD([*table.parameters(), *edges.parameters()], lr=0.1, fused=True)
    picked, ends = torch.randint(4000, (256, 40)), torch.randint(256, (2, 2000))

    def step():
        optimizer.zero_grad()
        loss = edges(table(picked), ends).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
