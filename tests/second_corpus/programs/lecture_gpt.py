"""A GPT as lectures build it from nothing: one module a head, and attention line by line."""

import torch
import torch.nn.functional as F
from torch import nn


class Sizes:
    batch, block, width, heads, layers, vocabulary = 16, 64, 128, 8, 3, 256


class Losses:
    module_per_head = True
    attention_by_hand = True
    windows_stacked = True
    update_per_parameter = True


KNOWN = {
    "module_per_head": (
        "Each head has its own products instead of one product for all heads",
        ["equal-modules-one-by-one"],
    ),
    "attention_by_hand": ("Attention is two products, a mask and a softmax", ["unfused-attention"]),
    "windows_stacked": ("A batch is stacked from one slice per row", ["python-loop-tensor-indexing"]),
    "update_per_parameter": ("AdamW updates one parameter at a time", ["optimizer-single-tensor"]),
}
TINY = {"batch": 2, "block": 4, "width": 8, "heads": 2, "layers": 1, "vocabulary": 11}


def attend(query, key, value, tril):
    if Losses.attention_by_hand:
        length = query.shape[-2]
        weights = query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5  # loss: attention_by_hand
        weights = weights.masked_fill(tril[:length, :length] == 0, float("-inf"))
        return F.softmax(weights, dim=-1) @ value
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


class Head(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.key = nn.Linear(width, size, bias=False)
        self.query = nn.Linear(width, size, bias=False)
        self.value = nn.Linear(width, size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(Sizes.block, Sizes.block)))

    def forward(self, x):
        return attend(self.query(x), self.key(x), self.value(x), self.tril)  # loss: module_per_head


class MultiHeadAttention(nn.Module):
    def __init__(self):
        super().__init__()
        size = Sizes.width // Sizes.heads
        self.heads = nn.ModuleList([Head(Sizes.width, size) for _ in range(Sizes.heads)])
        self.projection = nn.Linear(Sizes.width, Sizes.width)
        if not Losses.module_per_head:
            self.all_three = nn.utils.skip_init(nn.Linear, Sizes.width, 3 * Sizes.width, bias=False)
            parts = [getattr(head, part).weight for part in ("query", "key", "value") for head in self.heads]
            self.all_three.weight = nn.Parameter(torch.cat(parts).detach())
            self.tril = self.heads[0].tril
            del self.heads

    def forward(self, x):
        if Losses.module_per_head:
            out = torch.cat([head(x) for head in self.heads], dim=-1)  # loss: module_per_head
        else:
            batch, length, width = x.shape
            parts = self.all_three(x).view(batch, length, 3, Sizes.heads, width // Sizes.heads)
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            out = attend(query, key, value, self.tril).transpose(1, 2).reshape(batch, length, width)
        return self.projection(out)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        width = Sizes.width
        self.attention = MultiHeadAttention()
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_embedding = nn.Embedding(Sizes.vocabulary, Sizes.width)
        self.position_embedding = nn.Embedding(Sizes.block, Sizes.width)
        self.blocks = nn.Sequential(*[Block() for _ in range(Sizes.layers)])
        self.norm = nn.LayerNorm(Sizes.width)
        self.head = nn.Linear(Sizes.width, Sizes.vocabulary)

    def forward(self, idx, targets):
        x = self.token_embedding(idx) + self.position_embedding(torch.arange(idx.shape[1]))
        logits = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def get_batch(data):
    block = Sizes.block
    starts = torch.randint(len(data) - block, (Sizes.batch,))
    if Losses.windows_stacked:
        x = torch.stack([data[i : i + block] for i in starts])  # loss: windows_stacked
        y = torch.stack([data[i + 1 : i + block + 1] for i in starts])  # loss: windows_stacked
        return x, y
    windows = data.unfold(0, block + 1, 1)[starts]
    return windows[:, :-1], windows[:, 1:]


def build():
    data = torch.randint(Sizes.vocabulary, (50_000,))
    model = LanguageModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=None if Losses.update_per_parameter else True)

    def iteration():
        x, y = get_batch(data)
        loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()  # loss: update_per_parameter
        return loss.item()

    return iteration
