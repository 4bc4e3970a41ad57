"""Evaluate a small language model on held-out text: loss and greedy continuations. `--profile` records a trace."""

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import islice, pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import profile, schedule, tensorboard_trace_handler
from torch.utils.data import DataLoader, TensorDataset

VOCABULARY = 512
TEXT_LENGTH = 96
PROMPT_LENGTH = 64
NEW_TOKENS = 10


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(width, 3 * width, bias=False)
        self.to_out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.to_qkv(x).chunk(3, dim=-1))
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = (q @ k.transpose(-2, -1)) / q.shape[-1] ** 0.5
        weights = scores.masked_fill(future, float("-inf")).softmax(dim=-1)
        return self.to_out((weights @ v).transpose(1, 2).flatten(-2))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self, width: int = 64, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(TEXT_LENGTH, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        return self.head(self.norm(self.blocks(x)))


def token_losses(model: nn.Module, texts: Tensor) -> Tensor:
    """Cross-entropy of each next token, averaged over the batch: one value per position."""
    logits, targets = model(texts[:, :-1]), texts[:, 1:]
    losses = torch.empty(targets.shape[1])
    for position, (scores, tokens) in enumerate(zip(logits.unbind(1), targets.unbind(1), strict=True)):
        losses[position] = F.cross_entropy(scores, tokens)
    return losses


def penalise_repetition(logits: Tensor, tokens: Tensor, penalty: float = 1.2) -> None:
    """Make the tokens that a text already holds less likely (Keskar et al., 2019)."""
    for row in range(len(tokens)):
        seen = logits[row, tokens[row]]
        logits[row, tokens[row]] = torch.where(seen > 0, seen / penalty, seen * penalty)


def continue_texts(model: nn.Module, prompts: Tensor) -> Tensor:
    tokens = prompts
    for _ in range(NEW_TOKENS):
        logits = model(tokens)[:, -1]
        penalise_repetition(logits, tokens)
        tokens = torch.cat([tokens, logits.argmax(dim=-1, keepdim=True)], dim=1)
    return tokens


@torch.inference_mode()
def evaluate_batch(model: nn.Module, texts: Tensor) -> tuple[float, float]:
    """Mean loss, and the share of continued tokens that equal the text's own."""
    losses = token_losses(model, texts)
    continued = continue_texts(model, texts[:, :PROMPT_LENGTH])
    reference = texts[:, PROMPT_LENGTH : PROMPT_LENGTH + NEW_TOKENS]
    agreement = (continued[:, PROMPT_LENGTH:] == reference).float().mean()
    return losses.mean().item(), agreement.item()


def evaluate(batches: int, after_batch: Callable[[], None]) -> None:
    texts = (torch.arange(TEXT_LENGTH) + torch.randint(VOCABULARY, (640, 1))) % VOCABULARY
    loader = DataLoader(TensorDataset(texts), batch_size=16)
    model = LanguageModel().eval()
    losses, agreements, batch_ends = [], [], [time.perf_counter()]
    for (batch,) in islice(loader, batches):
        loss, agreement = evaluate_batch(model, batch)
        losses.append(loss)
        agreements.append(agreement)
        after_batch()
        batch_ends.append(time.perf_counter())
    batch_ms = [1000 * (end - start) for start, end in pairwise(batch_ends)]
    print(f"loss {statistics.mean(losses):.3f}, agreement {statistics.mean(agreements):.3f}, ", end="")
    print(f"median batch {statistics.median(batch_ms[5:] or batch_ms):.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if not arguments.profile:
        evaluate(arguments.batches, after_batch=lambda: None)
        return
    with profile(
        schedule=schedule(wait=1, warmup=1, active=3),
        on_trace_ready=tensorboard_trace_handler(".", "workstation", use_gzip=True),
        record_shapes=True,
        with_stack=True,
    ) as profiler:
        evaluate(batches=5, after_batch=profiler.step)


if __name__ == "__main__":
    main()
