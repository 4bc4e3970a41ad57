"""Recording of a program that knows nothing about it: the steps are those of its optimizers.

`tb-tidy record` starts the program; `bootstrap/sitecustomize.py` reports each step of an optimizer. A step lasts from
the end of one optimizer's step to the end of its next one. The optimizer that steps least often marks them, so that a
step of a GAN is one of all its optimizers. Steps of other threads, and steps in a compiled function or a captured CUDA
graph, do not count.

No failure here reaches the program, and none of its profilers is disturbed: if it creates one, this one ends.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tb_tidy_plugin.capture.guarded import unless_it_fails
from tb_tidy_plugin.capture.profiling import Cycle, Output, TidyProfile

if TYPE_CHECKING:
    from torch.optim import Optimizer

OBSERVED = 6
"""Steps of optimizers, of any, before the first recording may begin: they show which optimizer marks the steps."""

TIMED_AFTER = 20
"""Steps that are timed after the recording; then the program runs as if nothing had been."""

RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
"""Environment variables with the rank of a process."""

_THEN = "the program goes on without a recording"


@dataclass(frozen=True)
class RecordingPlan:
    """Settings of a recording, as the command passes them on.

    Attributes:
        folder: absolute path of the folder of the run.
        wait, warmup, steps: numbers of steps that are not recorded, that start the profiler, that are recorded.
        stacks: True to record the stacks.
    """

    folder: str
    wait: int
    warmup: int
    steps: int
    stacks: bool = True

    def to_text(self) -> str:
        """The value of `bootstrap.sitecustomize.SETTINGS`."""
        return json.dumps(asdict(self))


@dataclass
class ProcessNote:
    """What became of the recording in a process.

    Attributes:
        seen: steps of the marking optimizer. recorded: recorded ones. optimizer: class of the marking one.
        rank: None if unknown.
        ended_by: `profiler` if the program uses one itself, `claimed` if another process records this rank, `failed`
            after a failure, `end` otherwise; empty until then, and for ever if the process was killed.
    """

    seen: int = 0
    recorded: int = 0
    optimizer: str = ""
    rank: int | None = None
    ended_by: str = ""


class _Profile(TidyProfile):
    """Leaves it to the command to say that there were too few steps."""

    @property
    def is_recording(self) -> bool:
        """True in a step that is recorded."""
        return self._is_on and self.profiler.current_action.name.startswith("RECORD")

    @property
    def is_complete(self) -> bool:
        """True when enough steps were timed after the recording."""
        return self._steps >= self._cycle.needed + TIMED_AFTER

    def _say_too_few(self) -> None: ...


class Recorder:
    """Records the steps of the optimizers of one process."""

    def __init__(self, plan: RecordingPlan, notes: Path) -> None:
        self.note = ProcessNote()
        self._plan = plan
        self._notes = notes
        self._process, self._thread = os.getpid(), threading.get_ident()
        self._depth = 0
        self._steps: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self._marking: weakref.ref[Optimizer] | None = None
        self._profile: _Profile | None = None
        self._is_over = self._is_ours = self._is_registered = self._is_noted = False

    def enter(self) -> None:
        """Before the step of an optimizer, which may call that of another one."""
        if threading.get_ident() == self._thread:
            self._depth += 1

    def leave(self, optimizer: Optimizer | None) -> None:
        """After it."""
        if threading.get_ident() != self._thread:
            return
        self._depth = max(self._depth - 1, 0)
        if self._is_over or self._depth or optimizer is None:
            return
        if self._profile is not None and self._marks(optimizer):
            self._profile.end_mark()
        if unless_it_fails("a step", partial(self._stepped, optimizer), _THEN) is None:
            self._end("failed")

    def give_way(self) -> None:
        """The program creates a profiler of its own: there can be one only."""
        if not self._is_ours and not self._is_over:
            self._end("profiler")

    def finish(self) -> None:
        """Ends the recording; what is recorded so far is kept."""
        self._end("end")

    def _stepped(self, optimizer: Optimizer) -> bool:
        if self._process != os.getpid():  # a fork, of a process that may be recording
            self.__init__(self._plan, self._notes)  # type: ignore[misc]
        if not self._is_registered:
            self._register()
        if _is_captured():
            return True
        self._steps[optimizer] = self._steps.get(optimizer, 0) + 1
        if self._profile is None:
            self._observe(optimizer)
        elif self._marks(optimizer):
            self._mark(self._profile)
        return True

    def _register(self) -> None:
        self._is_registered = True
        atexit.register(self.finish)
        with suppress(ImportError):
            from multiprocessing import parent_process, util

            if parent_process() is not None:  # such a process ends without the functions of `atexit`
                util.Finalize(None, self.finish, exitpriority=0)
        _before_other_profilers(self.give_way)

    def _observe(self, optimizer: Optimizer) -> None:
        """Before the recording: the optimizer that has stepped least often marks the steps, of equals the first one."""
        least = min(self._steps, key=lambda each: self._steps[each])
        self._marking = weakref.ref(least)
        self.note.seen, self.note.optimizer = self._steps[least], type(least).__name__
        is_known = sum(self._steps.values()) >= min(OBSERVED, self._plan.wait) and (
            len(self._steps) == 1 or self._steps[least] > 1
        )
        if is_known and optimizer is least:
            self._start()
        elif self.note.seen == 1:
            self._write()

    def _marks(self, optimizer: Optimizer) -> bool:
        marking = None if self._marking is None else self._marking()
        if marking is None:  # it is gone, and another one has taken its place
            self._marking = weakref.ref(optimizer)
        return marking is None or marking is optimizer

    def _start(self) -> None:
        import torch

        self.note.rank = _rank()
        if not self._claim():
            self._end("claimed")
            return
        if torch.autograd.profiler._is_profiler_enabled:  # noqa: SLF001 - what torch itself asks
            self._end("profiler")
            return
        wait = max(self._plan.wait - self.note.seen, 0)
        stacks = self._plan.stacks and sys.getprofile() is None  # there can be one such function only
        with self._ours():
            self._profile = _Profile(
                self._plan.folder, Cycle(wait, self._plan.warmup, self._plan.steps), Output(), {"with_stack": stacks}
            )
            self._profile.start()

    def _mark(self, profile: _Profile) -> None:
        self.note.seen += 1
        if profile.is_recording:
            self.note.recorded += 1
        with self._ours():
            profile.step()
        if self.note.recorded and not profile.is_recording and not self._is_noted:
            self._is_noted = True
            self._write()
        if profile.is_complete:
            self.finish()

    @contextmanager
    def _ours(self) -> Iterator[None]:
        """Meanwhile, profilers are ours."""
        self._is_ours = True
        try:
            yield
        finally:
            self._is_ours = False

    def _claim(self) -> bool:
        """True if no other process of this program records this rank."""
        name = "only" if self.note.rank is None else str(self.note.rank)
        try:
            os.close(os.open(self._notes / f"claim-{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return False
        return True

    def _end(self, ended_by: str) -> None:
        if self._is_over or self._process != os.getpid():
            return
        self._is_over = True
        profile, self._profile = self._profile, None
        if profile is not None:
            with self._ours():
                unless_it_fails("the end of the recording", profile.stop, _THEN)
        self.note.ended_by = ended_by
        self._write()

    def _write(self) -> None:
        def write() -> None:
            path = self._notes / f"{os.getpid()}.json"
            path.write_text(json.dumps(asdict(self.note)), encoding="utf-8")

        unless_it_fails("the note for `tb-tidy record`", write, "its summary lacks this process")


@cache
def recorder(settings: str, notes: str) -> Recorder:
    """The recorder of this process, by its settings (`RecordingPlan.to_text`) and the folder for its notes."""
    return Recorder(RecordingPlan(**json.loads(settings)), Path(notes))


def _rank() -> int | None:
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return dist.get_rank()
    return next((int(text) for name in RANKS if (text := os.environ.get(name, "")).isdecimal()), None)


def _is_captured() -> bool:
    """True while a CUDA graph is captured: the step runs later, or never."""
    import torch

    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())  # type: ignore[no-untyped-call]


def _before_other_profilers(give_way: Callable[[], object]) -> None:
    """Calls `give_way` before each profiler of torch is created, or starts."""
    from torch.autograd import profiler

    def extended(method: Callable[..., object]) -> Callable[..., object]:
        @wraps(method)
        def extension(*arguments: Any, **named: Any) -> object:
            give_way()
            return method(*arguments, **named)

        return extension

    for name in ("profile", "emit_nvtx", "emit_itt"):
        kind = getattr(profiler, name, None)
        for method in ("__init__", "__enter__"):
            if kind is not None and method in vars(kind):
                setattr(kind, method, extended(vars(kind)[method]))
