"""One pair of statements, measured in a process of its own: all that they set, break or leak ends with it.

Reads one line from its input (a `MeasuringRequest`), writes one JSON message per line, the last of which is a
`Measured` or a `NotMeasured`, and ends. Its whole process group also ends as soon as its input does, so that nothing
keeps running if its parent is killed.

Memory is capped in two ways. On Linux without an accelerator the kernel refuses more data than the cap. Drivers of
accelerators reserve address space freely, so that no such limit can be set for them: there torch's own allocator is
limited, and a thread ends the process if its resident memory has grown by more than the cap.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from tb_tidy_plugin.benchmarks.blocks import LEAST_BLOCKS, Blocks, Time, evenly_chosen, in_turns
from tb_tidy_plugin.benchmarks.devices import NoDeviceError, addresses, described_device, device_for
from tb_tidy_plugin.benchmarks.equality import difference_of, kept_results
from tb_tidy_plugin.benchmarks.measurement import MOST_SAMPLES, Measurement, NotMeasured
from tb_tidy_plugin.rulekit import Benchmark
from tb_tidy_plugin.system import child
from tb_tidy_plugin.system.allowance import data_bytes, limit_data, status_bytes
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.words.units import Bytes
from tb_tidy_plugin.words.vocabulary import Verdict

if TYPE_CHECKING:
    import torch

_SEED = 0
EVEN = 0.01  # within this distance of 1, data placement in memory alone can cause such a ratio
WIDE = 0.25  # wider intervals say too little
DEVICE_SHARE = 0.8  # of the device's free memory, at most
WATCH_PERIOD_S = 0.02
THREAD_BYTES = 16 << 20  # of data for each thread that torch may start
FIRST_LINE = 300  # characters of an error's first line


class MeasuringRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A pair to measure, its device (`asked` and `preferred` as in `device_for`), and limits of time and memory."""

    rule: str
    pair: Benchmark
    asked: str = ""
    preferred: str = ""
    budget_s: float = 2.0
    memory_bytes: int = 4 << 30


class MeasuringProgress(msgspec.Struct, frozen=True, tag="progress"):
    """Progress of the measurement: the current work and the used part of the budget; once, the available devices."""

    stage: str
    fraction: float
    blocks: int = 0
    devices: tuple[str, ...] = ()


class Measured(msgspec.Struct, frozen=True, tag="measured"):
    """The end of a successful measurement."""

    measurement: Measurement


Message: TypeAlias = MeasuringProgress | Measured | NotMeasured
_Send: TypeAlias = Callable[[Message], object]

NO_TORCH = NotMeasured(
    error="PyTorch is not installed here.",
    advice=(
        "Install it, or run `pip install 'tb-tidy-plugin[bench]'`. Measurements from another machine do not need it."
    ),
)
TOO_LARGE = "Free memory, or measure on a machine with more of it."
_NOT_OURS = "The recorded shape may need another version of PyTorch."


def main() -> None:
    """Serves one request."""
    output = child.private_output()
    request = decode(child.question(), MeasuringRequest)
    child.end_with_input(_end_group)
    child.step_back()  # keeps its priority, since it measures
    writing = threading.Lock()

    def send(message: Message) -> None:
        with writing:
            output.write(msgspec.json.encode(message) + b"\n")
            output.flush()

    send(measured_answer(request, send))
    output.close()
    os._exit(0)  # without torch's work at exit, which may hang after an error of the device


def measured_answer(request: MeasuringRequest, send: _Send) -> Measured | NotMeasured:
    """Measures; describes every failure in words."""
    send(MeasuringProgress("Starting PyTorch", 0.0))
    try:
        import torch
    except ImportError:
        return NO_TORCH
    try:
        device = device_for(request.asked, request.preferred, request.pair.devices)
        _cap_memory(device, request.memory_bytes, send)
        return Measured(_measured(request, device, send))
    except NoDeviceError as problem:
        return NotMeasured(problem.error, problem.advice)
    except (MemoryError, torch.cuda.OutOfMemoryError) as problem:
        return NotMeasured(f"Memory ran out: {_first_line(problem)}", TOO_LARGE)
    except Exception as problem:
        if "can't allocate memory" in str(problem):
            return NotMeasured(f"Memory ran out: {_first_line(problem)}", TOO_LARGE)
        return NotMeasured(f"The statements failed with {type(problem).__name__}: {_first_line(problem)}", _NOT_OURS)


def _measured(request: MeasuringRequest, device: torch.device, send: _Send) -> Measurement:
    """Checks that both statements compute the same, then times them in turns; raises whatever they raise."""
    from torch.utils.benchmark import Timer

    pair = request.pair
    send(MeasuringProgress("Comparing results", 0.0, devices=addresses()))
    equal, difference = _compared(pair, device)
    on = described_device(device)
    names = _set_up(pair, device)

    def timer(statement: str) -> Time:
        timed = Timer(statement, globals=names, num_threads=on.threads)
        return lambda calls: timed.timeit(calls).mean

    def report(blocks: int, used: float) -> None:
        send(MeasuringProgress("Measuring", used, blocks))

    report(0, 0.0)
    blocks = in_turns(timer(pair.before), timer(pair.after), request.budget_s, report)
    doubts = ([difference] if difference else []) + _doubts(blocks)
    before_ns, after_ns = (1e9 * each for each in blocks.typical)
    return Measurement(
        rule=request.rule, before=pair.before, after=pair.after, setup=pair.setup, on=on,
        before_ns=before_ns, after_ns=after_ns,
        ratio=blocks.ratio.middle, low=blocks.ratio.low, high=blocks.ratio.high, blocks=len(blocks.first),
        before_samples_ns=evenly_chosen([1e9 * each for each in blocks.first], MOST_SAMPLES),
        after_samples_ns=evenly_chosen([1e9 * each for each in blocks.second], MOST_SAMPLES),
        verdict=verdict_on(blocks), equal=equal, trusted=not doubts, doubts=doubts,
        measured_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )  # fmt: skip


def verdict_on(blocks: Blocks) -> Verdict:
    """The meaning of the ratio's interval for the statement without the pattern."""
    if len(blocks.first) >= LEAST_BLOCKS and blocks.ratio.high < 1 - EVEN:
        return "faster"
    return "slower" if len(blocks.first) >= LEAST_BLOCKS and blocks.ratio.low > 1 + EVEN else "no_clear_difference"


def _compared(pair: Benchmark, device: torch.device) -> tuple[bool | None, str | None]:
    """True if both statements leave the same values, each after its own setup; and the difference if not."""
    results = []
    for statement in (pair.before, pair.after):
        names = _set_up(pair, device)
        exec(compile(statement, "<statement>", "exec"), names)
        results.append(kept_results(names, pair.compare))
    if not (results[0] and results[1]):
        return None, None
    difference = difference_of(*results)
    return difference is None, difference


def _set_up(pair: Benchmark, device: torch.device) -> dict[str, object]:
    import torch

    torch.manual_seed(_SEED)
    module = ModuleType("statements")
    sys.modules[module.__name__] = module  # torch.compile imports the module of what it compiles
    names: dict[str, object] = vars(module)
    names["device"] = str(device)
    exec(compile(pair.setup, "<setup>", "exec"), names)
    return names


def _doubts(blocks: Blocks) -> list[str]:
    """Reasons not to rely on a ratio: it varies, or there are too few of it."""
    width, count = blocks.ratio.width, len(blocks.first)
    swings = f"The ratio is uncertain by {width:.0%} of the longer time: measure longer, or on a quieter machine."
    few = f"Only {count} pairs of blocks fitted into the time: measure longer."
    return ([swings] if width > WIDE else []) + ([few] if count < LEAST_BLOCKS else [])


def _first_line(problem: BaseException) -> str:
    text = str(problem).strip()
    return text.splitlines()[0][:FIRST_LINE] if text else "the error has no message"


def _cap_memory(device: torch.device, most_bytes: int, send: _Send) -> None:
    import torch

    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        number = torch.cuda.current_device() if str(device) == "cuda" else device.index  # that is refused without one
        torch.cuda.set_per_process_memory_fraction(min(most_bytes, DEVICE_SHARE * free) / total, number)
    elif device.type == "mps":
        torch.mps.set_per_process_memory_fraction(min(most_bytes / torch.mps.recommended_max_memory(), 1.0))
    elif sys.platform == "linux":
        limit_data(data_bytes() + most_bytes + THREAD_BYTES * torch.get_num_threads())
    if sys.platform == "linux":
        threading.Thread(target=_watch_memory, args=(most_bytes, send), daemon=True).start()


def _watch_memory(most_bytes: int, send: _Send) -> None:
    before = status_bytes("VmRSS")
    while status_bytes("VmRSS") - before <= most_bytes:
        time.sleep(WATCH_PERIOD_S)
    send(NotMeasured(f"The statements need more than {Bytes(most_bytes)} of the host's memory.", TOO_LARGE))
    _end_group()


def _end_group() -> None:
    """Ends this process and all that it has started, such as compilers and workers of loaders."""
    if hasattr(os, "killpg") and os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
