"""Text generation: a static key-value cache, filled in place, and one token per pass under inference_mode."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LENGTH, VOCABULARY, BATCH = 256, 8, 128, 2048, 4


class CachedAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        shape = (BATCH, HEADS, LENGTH, WIDTH // HEADS)
        self.register_buffer("keys", torch.zeros(shape), persistent=False)
        self.register_buffer("values", torch.zeros(shape), persistent=False)

    def forward(self, x, position, mask):
        q, k, v = self.qkv(x).view(BATCH, 1, 3, HEADS, -1).permute(2, 0, 3, 1, 4).unbind(0)
        self.keys.index_copy_(2, position, k)
        self.values.index_copy_(2, position, v)
        y = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(BATCH, 1, WIDTH))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = CachedAttention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, position, mask):
        x = x + self.attention(self.norm1(x), position, mask)
        return x + self.mlp(self.norm2(x))


class Generator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.register_buffer("visible", torch.ones(LENGTH, LENGTH).tril().bool(), persistent=False)

    def forward(self, tokens, position):
        x = self.tokens(tokens) + self.positions(position)
        mask = self.visible[position]
        for block in self.blocks:
            x = block(x, position, mask)
        return self.head(self.norm(x[:, -1]))


def build():
    model = Generator().eval()
    positions = torch.arange(LENGTH).split(1)
    written = torch.zeros(BATCH, LENGTH, dtype=torch.long)
    written[:, 0] = torch.randint(VOCABULARY, (BATCH,))

    @torch.inference_mode()
    def step() -> None:
        """One request: eight tokens for each of the batch."""
        for at in range(8):
            logits = model(written[:, at : at + 1], positions[at])
            written[:, at + 1] = logits.argmax(dim=-1)

    return step
