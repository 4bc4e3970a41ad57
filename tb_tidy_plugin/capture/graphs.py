"""Names CUDA and HIP graphs: a small recording of each capture beside the run, and a name for each replay.

vLLM and SGLang call `install_in_server` in every process, by its entry points; others call `install` once, before
graphs are captured. Without a folder nothing is recorded. No failure here reaches the job.

A server's settings are read where a graph is captured: vLLM calls its plugins before it passes its configuration to a
worker.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tb_tidy_plugin.capture.guarded import unless_it_fails
from tb_tidy_plugin.system.side_files import GRAPH_SUFFIX

if TYPE_CHECKING:
    from torch.cuda import CUDAGraph
    from torch.profiler import profile

CAPTURE_MARK, REPLAY_MARK = "tidy:capture#", "tidy:replay#"
FOLDERS = ("TORCHTIDY_GRAPHS", "VLLM_TORCH_PROFILER_DIR", "SGLANG_TORCH_PROFILER_DIR")
"""Environment variables that name the folder of the traces; the first one set counts. vLLM reads its own up to 0.15."""

_VLLM_CONFIGURATION = "vllm.config"

_LONGEST_HOST = 30
_UNNAMED = re.compile(r"[^\w.-]")


def install(folder: str | os.PathLike[str] | None = None) -> bool:
    """Records each graph captured from now on into `folder`, and names its replays in recordings.

    Args:
        folder: that of the traces; by default the first of `FOLDERS` that is set.

    Returns:
        True if it is installed; False without a folder, and if PyTorch has no graphs.
    """
    chosen = folder or _set_folder()
    return bool(chosen) and _installed(lambda: Path(chosen or "").absolute())


def install_in_server() -> bool:
    """As `install`, for vLLM and SGLang. If no variable is set, vLLM's own `--profiler-config` names the folder.

    Returns:
        True if it is installed; False without a folder outside vLLM, and if PyTorch has no graphs.
    """
    return install() or (_VLLM_CONFIGURATION in sys.modules and _installed(_vllm_folder))


def _set_folder() -> str | None:
    return next(filter(None, map(os.environ.get, FOLDERS)), None)


def _installed(folder: Callable[[], Path | None]) -> bool:
    return bool(unless_it_fails("graphs", partial(_patch, folder), "they stay unnamed"))


def _vllm_folder() -> Path | None:
    """Folder in which vLLM's workers write what torch's profiler records; None if it records nothing, or elsewhere."""
    for configuration in _vllm_configurations():
        profiler = getattr(configuration, "profiler_config", None)
        folder = getattr(profiler, "torch_profiler_dir", None)
        if getattr(profiler, "profiler", None) == "torch" and isinstance(folder, str) and folder:
            return None if "://" in folder else Path(folder).absolute()
    return None


def _vllm_configurations() -> Iterator[object]:
    """Configurations of vLLM in use: the current one, if set, and those of the objects that capture a graph now."""
    current = getattr(sys.modules.get(_VLLM_CONFIGURATION), "get_current_vllm_config_or_none", None)
    if current is not None:
        yield current()
    frame = sys._getframe()  # noqa: SLF001 - the only way to the worker that calls
    while frame.f_back is not None:
        frame = frame.f_back
        try:
            yield object.__getattribute__(frame.f_locals.get("self"), "__dict__").get("vllm_config")
        except AttributeError:
            continue


def _patch(folder_of: Callable[[], Path | None]) -> bool:
    from torch.autograd import profiler
    from torch.cuda import CUDAGraph

    if hasattr(CUDAGraph.replay, "is_tidy"):
        return True
    begin, end, replay = CUDAGraph.capture_begin, CUDAGraph.capture_end, CUDAGraph.replay
    captures = _Captures(folder_of)

    def capture_begin(self: CUDAGraph, *arguments: Any, **named: Any) -> None:
        ident = captures.next_ident()
        if ident is None:
            _take_off(CUDAGraph, methods)
            begin(self, *arguments, **named)
            return
        recording = captures.recorded(ident)
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

    named_replay.is_tidy = True  # type: ignore[attr-defined] # marks it
    methods = ((begin, capture_begin), (end, capture_end), (replay, named_replay))

    for original, patched in methods:
        setattr(CUDAGraph, original.__name__, patched)
    return True


def _take_off(kind: type[CUDAGraph], methods: Iterable[tuple[Callable[..., None], Callable[..., None]]]) -> None:
    """Leaves the class as it was; what somebody else has wrapped around ours stays, and costs one call."""
    for original, patched in methods:
        if vars(kind).get(original.__name__) is patched:
            setattr(kind, original.__name__, original)


class _Captures:
    """The captures of this process: the folder of their recordings, which is asked for once, and their idents."""

    def __init__(self, folder_of: Callable[[], Path | None]) -> None:
        self._folder_of, self._folder = folder_of, Path()
        self._host = _UNNAMED.sub("_", socket.gethostname())[:_LONGEST_HOST]
        self._numbers = count()

    def next_ident(self) -> str | None:
        """A name for the capture that is about to begin; None without a folder to record it into."""
        number = next(self._numbers)
        if not number:
            folder = unless_it_fails("the folder of the traces", self._folder_of, "graphs stay unnamed")
            if folder is None:
                self._numbers = count()
                return None
            self._folder = folder
        return f"{self._host}-{os.getpid()}-{number}"

    def recorded(self, ident: str) -> ExitStack | None:
        """The started recording of the capture; None if it cannot be made."""
        record = partial(_recording, self._folder, ident)
        return unless_it_fails("a graph's capture", record, "its replays stay unnamed")


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
