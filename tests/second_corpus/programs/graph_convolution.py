"""A graph convolutional network as the paper's authors' code trains it: full batch, and validated after each update."""

import torch
import torch.nn.functional as F
from torch import nn


class Sizes:
    nodes, edges, features, hidden, classes = 2000, 10_000, 128, 64, 7


class Losses:
    degrees_each_layer = True
    rows_by_index = True
    validated_with_graph = True
    features_normalised_each_step = True


KNOWN = {
    "degrees_each_layer": ("The norm of each edge is computed again in each layer", []),
    "rows_by_index": (
        "Nodes are selected by an index, whose gradient is accumulated element by element",
        ["index-gradient-accumulated"],
    ),
    "validated_with_graph": (
        "The validation builds a graph for a backward pass that never runs",
        ["grad-graph-never-consumed"],
    ),
    "features_normalised_each_step": (
        "Constant features are normalised in each step",
        ["constant-rebuilt-every-step"],
    ),
}
TINY = {"nodes": 12, "edges": 30, "features": 6, "hidden": 4, "classes": 3}


def edge_norms(source, target, count):
    degrees = torch.zeros(count).index_add_(0, target, torch.ones(len(target)))
    inverse = degrees.clamp(min=1).pow(-0.5)
    return (inverse[source] * inverse[target])[:, None]


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / inputs**0.5)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x, source, target, norms):
        support = x @ self.weight
        if Losses.degrees_each_layer:
            norms = edge_norms(source, target, len(x))  # loss: degrees_each_layer
        gathered = support[source] if Losses.rows_by_index else support.index_select(0, source)  # loss: rows_by_index
        return torch.zeros_like(support).index_add_(0, target, gathered * norms) + self.bias


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.gc1 = GraphConvolution(Sizes.features, Sizes.hidden)
        self.gc2 = GraphConvolution(Sizes.hidden, Sizes.classes)

    def forward(self, x, *graph):
        x = F.relu(self.gc1(x, *graph))
        return F.log_softmax(self.gc2(x, *graph), dim=1)


def accuracy(output, labels):
    return (output.max(1)[1] == labels).double().mean()


def build():
    raw = torch.rand(Sizes.nodes, Sizes.features)
    labels = torch.randint(Sizes.classes, (Sizes.nodes,))
    source, target = torch.randint(Sizes.nodes, (2, Sizes.edges))
    graph = (source, target, edge_norms(source, target, Sizes.nodes))
    train, validate = torch.arange(Sizes.nodes // 2), torch.arange(Sizes.nodes // 2, Sizes.nodes)
    model = GCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4, fused=True)
    once = raw / raw.sum(1, keepdim=True)

    def validation(features):
        model.eval()
        with torch.set_grad_enabled(Losses.validated_with_graph):
            output = model(features, *graph)  # loss: validated_with_graph
        return F.nll_loss(output[validate], labels[validate]), accuracy(output[validate], labels[validate])

    def epoch():
        features = (
            raw / raw.sum(1, keepdim=True) if Losses.features_normalised_each_step else once
        )  # loss: features_normalised_each_step
        model.train()
        optimizer.zero_grad()
        output = model(features, *graph)
        loss = F.nll_loss(output[train], labels[train])
        loss.backward()
        optimizer.step()
        loss_val, acc_val = validation(features)
        return loss.item() + loss_val.item() + acc_val.item()

    return epoch
