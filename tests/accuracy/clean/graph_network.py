"""Message passing over a graph: messages gathered along edges and summed at their target nodes."""

import torch
import torch.nn.functional as F
from torch import nn

NODES, EDGES, FEATURES = 2000, 12_000, 64


class GraphLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.own = nn.Linear(FEATURES, FEATURES)
        self.neighbours = nn.Linear(FEATURES, FEATURES, bias=False)

    def forward(self, x, source, target, inverse_degree):
        messages = self.neighbours(x).index_select(0, source)
        received = torch.zeros_like(x).index_add(0, target, messages)
        return F.relu(self.own(x) + received * inverse_degree)


class GraphNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(GraphLayer() for _ in range(3))
        self.head = nn.Linear(FEATURES, 7)

    def forward(self, x, source, target, inverse_degree):
        for layer in self.layers:
            x = layer(x, source, target, inverse_degree)
        return self.head(x)


def build():
    features = torch.randn(NODES, FEATURES)
    source, target = torch.randint(NODES, (2, EDGES)).unbind(0)
    inverse_degree = torch.bincount(target, minlength=NODES).clamp_(min=1).float().reciprocal_().unsqueeze(1)
    labels = torch.randint(7, (NODES,))
    training = torch.randperm(NODES)[:1200]
    model = GraphNetwork()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        logits = model(features, source, target, inverse_degree)
        F.cross_entropy(logits[training], labels[training]).backward()
        optimizer.step()

    return step
