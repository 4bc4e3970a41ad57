"""Records small programs with torch and counts what upstream's live matchers find in each.

Run as a program of its own: `python live_upstream.py FOLDER` writes one trace per program and `live.json` with the
counts; a matcher that crashed counts as null. Exits with 3 where this torch has no matchers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.profiler import profile

try:
    from torch.profiler import _pattern_matcher as upstream
except ImportError:
    sys.exit(3)


def loop_over_rows() -> None:
    x = torch.ones(32, 16)
    for row in range(32):
        x[row] = row


def loop_of_sums() -> None:
    x, total = torch.ones(20, 4), torch.zeros(4)
    for row in range(20):
        total += x[row]


def train(optimizer: type[torch.optim.Optimizer], set_to_none: bool, **options: bool) -> None:
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    stepper = optimizer(model.parameters(), lr=0.1, **options)  # type: ignore[call-arg, arg-type]
    for _ in range(2):
        nn.functional.cross_entropy(model(torch.ones(8, 16)), torch.zeros(8, dtype=torch.long)).backward()  # type: ignore[no-untyped-call]
        stepper.step()
        stepper.zero_grad(set_to_none=set_to_none)


def train_with_sgd() -> None:
    train(torch.optim.SGD, set_to_none=False, foreach=False)


def train_with_adamw() -> None:
    train(torch.optim.AdamW, set_to_none=True, foreach=False)


def train_with_fused_adam() -> None:
    train(torch.optim.Adam, set_to_none=True, fused=True)


def load_batches() -> None:
    for batch in torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=4):  # type: ignore[arg-type]
        batch.sum()


def convolve() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3, bias=False), nn.BatchNorm2d(4))
    model(torch.ones(2, 3, 12, 12))


def multiply_halves() -> None:
    odd, even = torch.ones(15, 15, dtype=torch.bfloat16), torch.ones(16, 16, dtype=torch.bfloat16)
    odd @ odd
    even @ even
    torch.bmm(torch.ones(2, 3, 3), torch.ones(2, 3, 3))


def copy_a_constant() -> None:
    torch.ones(64, 64).to("cpu", copy=True)


PROGRAMS: tuple[Callable[[], None], ...] = (
    loop_over_rows, loop_of_sums, train_with_sgd, train_with_adamw, train_with_fused_adam, load_batches, convolve,
    multiply_halves, copy_a_constant,
)  # fmt: skip


def matchers(recorded: profile) -> list[tuple[str, upstream.Pattern]]:
    kinds = (
        upstream.ExtraCUDACopyPattern, upstream.ForLoopIndexingPattern, upstream.FP32MatMulPattern,
        upstream.OptimizerSingleTensorPattern, upstream.SynchronizedDataLoaderPattern, upstream.GradNotSetToNonePattern,
        upstream.Conv2dBiasFollowedByBatchNorm2dPattern, upstream.MatMulDimInFP16Pattern,
    )  # fmt: skip
    names = ("aten::mm$", "aten::b?mm$")
    return [
        *((kind.__name__, kind(recorded)) for kind in kinds),
        *((f"NamePattern({name})", upstream.NamePattern(recorded, name)) for name in names),
    ]


def count(pattern: upstream.Pattern) -> int | None:
    try:
        return len(pattern.matched_events())  # type: ignore[no-untyped-call]
    except UnicodeDecodeError:
        return None


def main(folder: Path) -> None:
    counts = {}
    for program in PROGRAMS:
        program()  # warm: the first run of anything leaves events of its own
        with profile(record_shapes=True, with_stack=True, profile_memory=True) as recorded:
            program()
        recorded.export_chrome_trace(str(folder / f"{program.__name__}.pt.trace.json"))
        counts[program.__name__] = {name: count(pattern) for name, pattern in matchers(recorded)}
    (folder / "live.json").write_text(json.dumps(counts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
