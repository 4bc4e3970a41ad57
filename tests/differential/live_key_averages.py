"""Records programs with torch and writes what `key_averages` says of each, and the FLOPs torch counts.

Run as a program of its own: `python live_key_averages.py FOLDER` writes one trace per program, `live.json` with torch's
tables of them, and `flops.json` with what torch counts otherwise, and the names of its operators' arguments.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.nn import functional
from torch.profiler import profile, record_function, schedule
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count


def train_a_cnn() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, groups=2, bias=False), nn.GroupNorm(4, 16), nn.Flatten(), nn.LazyLinear(10),
    )  # fmt: skip
    model(torch.ones(2, 3, 16, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        functional.cross_entropy(model(torch.randn(4, 3, 16, 16)), torch.zeros(4, dtype=torch.long)).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def train_a_transformer() -> None:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    optimizer = torch.optim.AdamW(layer.parameters(), foreach=True)
    for batch in (torch.randn(2, 10, 32), torch.randn(3, 12, 32)):
        with record_function("forward"):
            loss = layer(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def loop_over_an_lstm() -> None:
    cell = nn.LSTMCell(8, 16)
    state = (torch.zeros(4, 16), torch.zeros(4, 16))
    for step in torch.randn(12, 4, 8):
        state = cell(step, state)
    state[0].sum().backward()  # type: ignore[no-untyped-call]


def load_with_threads() -> None:
    def work(size: int) -> None:
        for _ in range(10):
            torch.randn(size, size).mm(torch.randn(size, size)).relu().sum().item()

    threads = [threading.Thread(target=work, args=(size,)) for size in (32, 48)]
    for thread in threads:
        thread.start()
    for batch in DataLoader(torch.randn(32, 16), batch_size=8):  # type: ignore[arg-type]
        batch.to(torch.float64).mean()
    for thread in threads:
        thread.join()


@torch.no_grad()
def infer() -> None:
    model = nn.Sequential(nn.Conv1d(4, 8, 3, dilation=2), nn.GELU(), nn.Flatten(), nn.LazyLinear(5)).eval()
    for size in (2, 2, 4):
        model(torch.randn(size, 4, 20)).softmax(-1).argmax(-1).tolist()


def repeat_in_the_backward_pass() -> None:
    inner = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
    values = torch.randn(4, 8, requires_grad=True)
    checkpoint(inner, checkpoint(inner, values, use_reentrant=True), use_reentrant=False).sum().backward()


def reduce_between_processes() -> None:
    with tempfile.TemporaryDirectory() as folder:
        distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        values = torch.randn(64)
        handles = [distributed.all_reduce(values, async_op=True) for _ in range(3)]
        values.exp()
        for handle in handles:
            handle.wait()
        distributed.destroy_process_group()


def multiply_and_add() -> None:
    left, right, batch = torch.randn(6, 7), torch.randn(7, 8), torch.randn(3, 4, 5)
    left.mm(right)
    torch.addmm(torch.randn(8), left, right)
    torch.bmm(batch, batch.mT)
    torch.baddbmm(torch.randn(3, 4, 4), batch, batch.mT)
    left * left
    left + left
    left * torch.randn(1, 7)
    functional.conv2d(torch.randn(2, 4, 9, 9), torch.randn(6, 2, 3, 3), stride=2, padding=1, groups=2)
    functional.conv2d(torch.randn(2, 4, 9, 9), torch.randn(6, 4, 2, 3), dilation=2)


def convolve_both_ways() -> None:
    image = torch.randn(2, 4, 10, 12, requires_grad=True)
    model = nn.Sequential(
        nn.Conv2d(4, 8, (3, 2), stride=2, padding=1), nn.ConvTranspose2d(8, 6, 3, stride=2),
        nn.Flatten(2), nn.Conv1d(6, 3, 5, dilation=2),
    )  # fmt: skip
    model(image).sum().backward()
    frozen = nn.Conv3d(2, 3, 2, bias=False).requires_grad_(False)
    frozen(torch.randn(1, 2, 4, 5, 6, requires_grad=True)).sum().backward()
    functional.linear(torch.randn(3, 5, 7), torch.randn(4, 7), torch.randn(4))
    torch.matmul(torch.randn(2, 3, 4, 5), torch.randn(3, 5, 6))
    torch.matmul(torch.randn(3, 4, 5), torch.randn(5))


PROGRAMS: tuple[Callable[[], None], ...] = (
    train_a_cnn, train_a_transformer, loop_over_an_lstm, load_with_threads, infer, repeat_in_the_backward_pass,
    reduce_between_processes, multiply_and_add, convolve_both_ways,
)  # fmt: skip


def averages(recorded: profile, by_shape: bool) -> list[dict[str, Any]]:
    return [
        {
            "name": entry.key,
            "shapes": entry.input_shapes if by_shape else None,
            "annotation": entry.is_user_annotation,
            "calls": entry.count,
            "host_total_ns": round(entry.cpu_time_total * 1000),
            "host_self_ns": round(entry.self_cpu_time_total * 1000),
        }
        for entry in recorded.key_averages(group_by_input_shape=by_shape)
    ]


def counted_flops(events: Iterable[Any]) -> list[tuple[str, list[list[int]], int]]:
    return [(event.name, event.input_shapes, event.flops) for event in events if event.flops]


def otherwise_counted() -> dict[str, Any]:
    """FLOPs by `torch.utils.flop_counter`: of a program by operator, and of attention for some shapes."""
    query, key = (2, 4, 16, 8), (2, 4, 24, 8)
    with FlopCounterMode(display=False) as counter:
        convolve_both_ways()
    schemas = {
        schema.name: [argument.name for argument in schema.arguments]
        for schema in torch._C._jit_get_all_schemas()  # noqa: SLF001
        if schema.overload_name == "" and schema.name.startswith("aten::")
    }
    return {
        "convolve_both_ways": {str(name): count for name, count in counter.get_flop_counts()["Global"].items()},
        "attention": {
            "query": query,
            "key": key,
            "forward": sdpa_flop_count(query, key, key),  # type: ignore[no-untyped-call]
            "backward": sdpa_backward_flop_count(query, query, key, key),  # type: ignore[no-untyped-call]
        },
        "arguments": schemas,
    }


def main(folder: Path) -> None:
    found: dict[str, Any] = {}
    every_thread = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)  # noqa: SLF001
    for program in PROGRAMS:
        program()  # warm: the first run of anything leaves events of its own
        for stacks in (False, True):
            name = program.__name__ + ("_with_stacks" if stacks else "")
            with profile(
                record_shapes=True, with_stack=stacks, profile_memory=True, with_flops=True,
                experimental_config=every_thread, schedule=schedule(wait=0, warmup=0, active=2),
            ) as recorded:  # fmt: skip
                program()
                recorded.step()
                program()
            recorded.export_chrome_trace(str(folder / f"{name}.pt.trace.json"))
            found[name] = {
                "by_name": averages(recorded, by_shape=False),
                "by_shape": averages(recorded, by_shape=True),
                "flops": counted_flops(recorded.events()),
            }
    (folder / "live.json").write_text(json.dumps(found))
    (folder / "flops.json").write_text(json.dumps(otherwise_counted()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
