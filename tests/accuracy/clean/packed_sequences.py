"""Packed sentences of unequal length through a bidirectional GRU; the loader's function pads the batches."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader


def padded(batch):
    words, labels = zip(*batch)
    return pad_sequence(words, batch_first=True), torch.tensor([len(each) for each in words]), torch.stack(labels)


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(3000, 64)
        self.gru = nn.GRU(64, 96, batch_first=True, bidirectional=True)
        self.head = nn.Linear(192, 4)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embedding(words), lengths, batch_first=True, enforce_sorted=False)
        _, last = self.gru(packed)
        return self.head(last.transpose(0, 1).flatten(1))


def build():
    lengths = torch.randint(8, 33, (4096,)).tolist()
    data = list(zip(torch.randint(3000, (sum(lengths),)).split(lengths), torch.randint(4, (4096,)).unbind(0)))
    loader = DataLoader(data, batch_size=48, shuffle=True, num_workers=2, collate_fn=padded, persistent_workers=True)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    batches = iter(loader)

    def step() -> None:
        words, counts, labels = next(batches)
        optimizer.zero_grad()
        F.cross_entropy(model(words, counts), labels).backward()
        optimizer.step()

    return step
