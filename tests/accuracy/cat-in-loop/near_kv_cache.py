"""Tokens are generated one by one; each layer's keys and values grow, and attention reads all of them each time."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.all = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, past):
        batch, length, width = x.shape
        query, key, value = self.all(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind()
        if past is not None:
            key = torch.cat([past[0], key], dim=2)
            value = torch.cat([past[1], value], dim=2)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=past is None)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width)), (key, value)


class Decoder(nn.Module):
    def __init__(self, words: int, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Attention(width, 4) for _ in range(layers))
        self.words = nn.Linear(width, words)

    def forward(self, tokens, past):
        x, caches = self.embedding(tokens), []
        for layer, cache in zip(self.layers, past):
            mixed, grown = layer(x, cache)
            x = x + mixed
            caches.append(grown)
        return self.words(x[:, -1]), caches


@torch.inference_mode()
def generated(model, prompt, count):
    past, tokens, found = [None] * len(model.layers), prompt, []
    for _ in range(count):
        logits, past = model(tokens, past)
        tokens = logits.argmax(-1, keepdim=True)
        found.append(tokens)
    return torch.cat(found, dim=1)


def build():
    model = Decoder(512, 128, 3).eval()
    prompt = torch.randint(512, (16, 96))

    def step():
        return generated(model, prompt, 10)

    return step
