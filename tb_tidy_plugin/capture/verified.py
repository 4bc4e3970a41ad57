"""Steps of a job under `tb-tidy verify`: run in turns, as that command orders through a pipe, and never recorded."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING

from tb_tidy_plugin.capture.profiling import TidyProfile, uses_gpu, wait_for_device

if TYPE_CHECKING:
    import torch

CHANNEL = "TORCHTIDY_VERIFY"
"""Environment variable with the pipes' numbers, `3,4`: to read orders from, and to write answers to."""

_SEED = 0


def is_verified() -> bool:
    """True if `tb-tidy verify` runs this process, and it is the first rank."""
    return CHANNEL in os.environ and os.environ.get("RANK", "0") == "0"


class VerifiedProfile(TidyProfile):
    """Runs the ordered number of steps, and waits for the next order between two steps.

    Orders and answers are lines of JSON. `{"results": n}` asks for the results of n steps, `{"turn": s}` for steps of
    at least s seconds, the first of which is not timed. The process ends when the orders do.
    """

    def start(self) -> None:
        """Sets all seeds, and waits for the first order."""
        orders, answers = (int(number) for number in os.environ.pop(CHANNEL).split(","))
        self._answers = os.fdopen(answers, "w", encoding="ascii")
        self._orders: SimpleQueue[dict[str, float]] = SimpleQueue()
        threading.Thread(target=self._listen, args=(os.fdopen(orders, encoding="ascii"),), daemon=True).start()
        _seed()
        self._losses: list[float] = []
        self._unhook: Callable[[], None] | None = None
        self._answer({"ready": _parameters()[0]})
        self._take_order()

    def step(self) -> None:
        """Marks the end of a step of the job."""
        self._made += 1
        if "results" in self._order:
            if self._made < self._order["results"]:
                return
            if self._unhook is not None:
                self._unhook()
            digest, sums = _parameters()
            self._answer({"losses": self._losses, "digest": digest, "sums": sums})
        else:
            if self._made == 1:
                wait_for_device()
                self._since_s = time.perf_counter()
            if self._made < 2 or time.perf_counter() - self._since_s < self._order["turn"]:
                return
            wait_for_device()
            seconds = time.perf_counter() - self._since_s
            self._answer({"steps": self._made - 1, "seconds": seconds, "peak_bytes": _peak_bytes()})
        self._take_order()

    def stop(self) -> None:
        """Reports that the job makes no further step."""
        if self._unhook is not None:
            self._unhook()
        self._answer({"ended": self._made})

    def _take_order(self) -> None:
        self._order = self._orders.get()
        self._made = 0
        self._since_s = 0.0
        if "results" in self._order:
            self._losses = []
            self._unhook = _noting_losses(self._losses)

    def _listen(self, orders: IO[str]) -> None:
        for line in orders:
            self._orders.put(json.loads(line))
        os._exit(0)  # the command has ended: this job is no longer needed

    def _answer(self, answer: dict[str, object]) -> None:
        try:
            self._answers.write(f"{json.dumps(answer)}\n")
            self._answers.flush()
        except BrokenPipeError:
            os._exit(0)


def _seed() -> None:
    import torch

    random.seed(_SEED)
    torch.manual_seed(_SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(_SEED)


def _noting_losses(losses: list[float]) -> Callable[[], None]:
    """Records the sum of everything that `backward` is called for, until the returned function is called."""
    import torch

    backward = torch.autograd.backward

    def noted(tensors: object, *arguments: object, **named: object) -> None:
        given = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        losses.extend(float(each.detach().double().sum()) for each in given if isinstance(each, torch.Tensor))
        backward(tensors, *arguments, **named)  # type: ignore[arg-type] # as the job has given them

    def unhook() -> None:
        torch.autograd.backward = backward

    torch.autograd.backward = noted
    return unhook


def _parameters() -> tuple[str, list[float]]:
    """A hash of all parameters of the process, and their sums, in an order that is the same in each process."""
    import torch

    found = [each.detach().cpu() for each in gc.get_objects() if issubclass(type(each), torch.nn.Parameter)]
    hashes = sorted(hashlib.sha256(_bytes_of(each)).hexdigest() for each in found)
    sums = sorted((each.numel(), float(each.double().sum())) for each in found)
    return hashlib.sha256("".join(hashes).encode()).hexdigest(), [value for _, value in sums]


def _bytes_of(tensor: torch.Tensor) -> bytes:
    import torch

    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy())


def _peak_bytes() -> int:
    """Peak memory so far: of the GPU if one is used, else of the process; 0 if unknown."""
    import torch

    if uses_gpu():
        return torch.cuda.max_memory_allocated()
    if sys.platform == "win32":
        return 0
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10
