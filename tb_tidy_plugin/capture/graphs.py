"""Names CUDA and HIP graphs: a small recording of each capture beside the run, and a name for each replay.

vLLM loads `install` in every worker by its entry point; others call it once, before graphs are captured. It does
nothing without a known folder. No failure here reaches the job.
"""

from __future__ import annotations

import os
import re
import socket
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tb_tidy_plugin.capture.guarded import unless_it_fails
from tb_tidy_plugin.side_files import GRAPH_SUFFIX

if TYPE_CHECKING:
    from torch.cuda import CUDAGraph
    from torch.profiler import profile

CAPTURE_MARK, REPLAY_MARK = "tidy:capture#", "tidy:replay#"
FOLDERS = ("TORCHTIDY_GRAPHS", "VLLM_TORCH_PROFILER_DIR", "SGLANG_TORCH_PROFILER_DIR")
"""Environment variables that name the folder of the traces; the first one set counts."""

_LONGEST_HOST = 30
_UNNAMED = re.compile(r"[^\w.-]")


def install(folder: str | os.PathLike[str] | None = None) -> bool:
    """Records each graph captured from now on into `folder`, and names its replays in recordings.

    Args:
        folder: that of the traces; by default the first of `FOLDERS` that is set.

    Returns:
        True if it is installed; False without a folder, and if PyTorch has no graphs.
    """
    chosen = folder or next(filter(None, map(os.environ.get, FOLDERS)), None)
    return bool(chosen and unless_it_fails("graphs", partial(_patch, Path(chosen).absolute()), "they stay unnamed"))


def _patch(folder: Path) -> bool:
    from torch.autograd import profiler
    from torch.cuda import CUDAGraph

    if hasattr(CUDAGraph.replay, "tidy_folder"):
        return True
    begin, end, replay = CUDAGraph.capture_begin, CUDAGraph.capture_end, CUDAGraph.replay
    host, numbers = _UNNAMED.sub("_", socket.gethostname())[:_LONGEST_HOST], count()

    def capture_begin(self: CUDAGraph, *arguments: Any, **named: Any) -> None:
        ident = f"{host}-{os.getpid()}-{next(numbers)}"
        recording = unless_it_fails("a graph's capture", partial(_recording, folder, ident), "its replays stay unnamed")
        try:
            begin(self, *arguments, **named)
        except BaseException:
            _finished(recording)
            raise
        self.__dict__.update(_tidy_recording=recording, _tidy_name=f"{REPLAY_MARK}{ident}")

    def capture_end(self: CUDAGraph) -> None:
        try:
            end(self)
        finally:
            _finished(self.__dict__.pop("_tidy_recording", None))

    def named_replay(self: CUDAGraph) -> None:
        name = profiler._is_profiler_enabled and self.__dict__.get("_tidy_name")  # noqa: SLF001 - costs nothing
        if not name:
            replay(self)
            return
        with profiler.record_function(name):
            replay(self)

    named_replay.tidy_folder = folder  # type: ignore[attr-defined] # marks it
    for original, patched in ((begin, capture_begin), (end, capture_end), (replay, named_replay)):
        setattr(CUDAGraph, original.__name__, patched)
    return True


def _recording(folder: Path, ident: str) -> ExitStack:
    """A started recording, written when it is closed; only a name if another one already runs."""
    import torch

    stack = ExitStack()
    try:
        if not torch.autograd.profiler._is_profiler_enabled:  # noqa: SLF001 - as above
            folder.mkdir(parents=True, exist_ok=True)
            recorded = torch.profiler.profile(record_shapes=True, with_stack=True)
            stack.callback(_written, recorded, folder / f"graph-{ident}{GRAPH_SUFFIX}")
            stack.enter_context(recorded)
        stack.enter_context(torch.autograd.profiler.record_function(f"{CAPTURE_MARK}{ident}"))
    except BaseException:
        stack.close()
        raise
    return stack


def _written(recorded: profile, path: Path) -> None:
    draft = path.with_name(f"draft-{path.name}")
    try:
        recorded.export_chrome_trace(str(draft))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _finished(recording: ExitStack | None) -> None:
    if recording is not None:
        unless_it_fails("a graph's capture", recording.close, "its replays stay unnamed")
