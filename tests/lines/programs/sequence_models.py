"""Recurrent cells written out, beam search, CTC-like loops, sampling, cells chosen by name, zip and enumerate nests."""

import string
from itertools import chain, islice

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

LETTERS = string.ascii_lowercase + " "


class LSTMCell(nn.Module):
    def __init__(self, i, h):
        super().__init__()
        self.h = h
        self.x2h = nn.Linear(i, 4 * h); self.h2h = nn.Linear(h, 4 * h)

    def forward(self, x, state):
        h, c = state
        i, f, g, o = (self.x2h(x) + self.h2h(h)).chunk(4, dim=-1)
        i, f, o = torch.sigmoid(i), torch.sigmoid(f), torch.sigmoid(o)
        g = torch.tanh(g)
        c = f * c + i * g
        h = o * torch.tanh(c)
        return h, (h, c)


class GRUCell(nn.Module):
    def __init__(self, i, h):
        super().__init__()
        self.h = h
        self.W, self.U = nn.Parameter(torch.randn(i, 3 * h) * .1), nn.Parameter(torch.randn(h, 3 * h) * .1)
        self.b = nn.Parameter(torch.zeros(3 * h))

    def forward(self, x, state):
        a = x @ self.W + self.b
        r = (a[:, : self.h] + state @ self.U[:, : self.h]).sigmoid()
        z = (a[:, self.h : 2 * self.h] + state @ self.U[:, self.h : 2 * self.h]).sigmoid()
        n = (a[:, 2 * self.h :] + r * (state @ self.U[:, 2 * self.h :])).tanh()
        h = (1 - z) * n + z * state
        return h, h


CELLS = {"lstm": (LSTMCell, lambda n, h: (torch.zeros(n, h), torch.zeros(n, h))), "gru": (GRUCell, lambda n, h: torch.zeros(n, h))}


class Unrolled(nn.Module):
    def __init__(self, kind, i, h):
        super().__init__()
        cell, self.start = CELLS[kind]
        self.forwards, self.backwards = cell(i, h), cell(i, h)
        self.size = h

    def run(self, cell, xs):
        state = self.start(xs[0].size(0), self.size)
        outs = []
        for x in xs:
            out, state = cell(x, state)
            outs.append(out)
        return outs

    def forward(self, x):
        there = self.run(self.forwards, x.unbind(1))
        back = self.run(self.backwards, x.flip(1).unbind(1))[::-1]
        return torch.stack([torch.cat(pair, -1) for pair in zip(there, back)], 1)


class Tagger(nn.Module):
    def __init__(self, tags=3):
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS), 8)
        self.rnn = nn.LSTM(8, 8, batch_first=True, bidirectional=True)
        self.own = nn.ModuleList([Unrolled(kind, 16, 4) for kind in CELLS])
        self.out = nn.Linear(16, tags)
        self.transitions = nn.Parameter(torch.zeros(tags, tags))

    def encode(self, words):
        ids = [torch.tensor([LETTERS.index(l) for l in w]) for w in words]
        lengths = torch.tensor(list(map(len, ids)))
        x = self.embed(pad_sequence(ids, batch_first=True))
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return y, lengths

    def forward(self, words):
        y, lengths = self.encode(words)
        y = torch.cat([layer(y) for layer in self.own], dim=-1)
        return self.out(y).log_softmax(-1), lengths

    def score(self, logits, tags):
        total = logits[0, tags[0]]
        for t, (before, after) in enumerate(zip(tags, tags[1:]), 1):
            total = total + logits[t, after] + self.transitions[before, after]
        return total

    def partition(self, logits):
        alpha = logits[0]
        for row in logits[1:]:
            alpha = torch.logsumexp(alpha[:, None] + self.transitions + row[None, :], dim=0)
        return alpha.logsumexp(0)

    def viterbi(self, logits):
        best, back = logits[0], []
        for row in logits[1:]:
            scores, at = (best.unsqueeze(1) + self.transitions).max(0)
            best = scores + row
            back.append(at)
        tag = best.argmax().item()
        path = [tag]
        for at in reversed(back): path.append(tag := at[tag].item())
        return path[::-1]


def beam(logits, width=2):
    beams = [((), logits.new_zeros(()))]
    for row in logits:
        grown = [((*seq, k), score + row[k]) for seq, score in beams for k in range(len(row))]
        beams = sorted(grown, key=lambda each: each[1], reverse=True)[:width]
    return beams[0][0]


def ngrams(words, n=2):
    yield from (w[i : i + n] for w in words for i in range(len(w) - n + 1))


def build():
    model = Tagger()
    optimizer = torch.optim.Adagrad(chain(model.embed.parameters(), model.own.parameters(), model.out.parameters()), 0.1)

    def step():
        words = ["torch", "tidy", "line"]
        logits, lengths = model(words)
        loss = sum(
            model.partition(l[:n]) - model.score(l[:n], [i % 3 for i in range(n)])
            for l, n in zip(logits, lengths.tolist())
        ) / len(words)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            paths = [model.viterbi(l[:n]) for l, n in zip(logits, lengths)]
            found = beam(logits[0][:3])
        grams = {g: torch.tensor(float(len(g))).log1p() for g in islice(ngrams(words), 4)}
        return loss, paths, found, sum(grams.values())

    return step
