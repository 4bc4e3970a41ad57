"""A long recording to measure with: training steps of a small language model, on the CPU, with shapes and stacks."""

from __future__ import annotations

from pathlib import Path

BLOCKS, WIDTH, HEADS, LENGTH, BATCH, TOKENS = 6, 32, 4, 16, 2, 128


def record_loop(folder: Path, steps: int, memory: bool = False) -> Path:
    """Writes the trace of so many steps, with memory events if wanted, into `folder`, and returns it."""
    import torch
    from torch import nn, profiler

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
            self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            given = self.before(x)
            x = x + self.attention(given, given, given, need_weights=False)[0]
            mixed: torch.Tensor = self.narrow(nn.functional.gelu(self.wide(self.between(x))))
            return x + mixed

    torch.set_num_threads(1)
    model = nn.Sequential(nn.Embedding(TOKENS, WIDTH), *(Block() for _ in range(BLOCKS)), nn.Linear(WIDTH, TOKENS))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with profiler.profile(
        schedule=profiler.schedule(wait=1, warmup=1, active=steps),
        on_trace_ready=profiler.tensorboard_trace_handler(str(folder)),
        record_shapes=True,
        with_stack=True,
        profile_memory=memory,
    ) as recording:
        for _ in range(steps + 2):
            tokens = torch.randint(TOKENS, (BATCH, LENGTH + 1))
            optimizer.zero_grad()
            scores = model(tokens[:, :-1])
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            loss.item()
            recording.step()
    return folder
