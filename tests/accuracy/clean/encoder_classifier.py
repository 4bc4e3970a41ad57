"""torch's transformer encoder on padded sequences, with a padding mask."""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(2000, 96, padding_idx=0)
        layer = nn.TransformerEncoderLayer(96, 4, 256, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(96, 5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        padding = tokens == 0
        hidden = self.encoder(self.embedding(tokens), src_key_padding_mask=padding)
        kept = (~padding).unsqueeze(-1).to(hidden.dtype)
        return self.head((hidden * kept).sum(1) / kept.sum(1))


def build():
    lengths = torch.randint(16, 49, (512, 1))
    tokens = torch.randint(1, 2000, (512, 48)).masked_fill(torch.arange(48) >= lengths, 0)
    labels = torch.randint(5, (512,))
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    loss_of = nn.CrossEntropyLoss()

    def step() -> None:
        chosen = torch.randint(512, (16,))
        optimizer.zero_grad()
        loss_of(model(tokens[chosen]), labels[chosen]).backward()
        optimizer.step()

    return step
