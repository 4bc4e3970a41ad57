"""The user's own frame behind an event: the nearest one outside torch, installed packages and the standard library."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import lru_cache

import msgspec
import numpy as np

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts.inductor import is_generated
from tb_tidy_plugin.trace.columns import ABSENT, Category
from tb_tidy_plugin.words.vocabulary import Pass, Precision

FRAME = re.compile(r"(?P<file>.+?)\((?P<line>\d+)\): (?P<function>.*)", re.DOTALL)
DYNAMO_RESUME = re.compile(r"torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d+)")
CALL_STACK_KEY = b'"Call stack"'

_INSTALLED = re.compile(r"(?:^|/)(?:site-packages|dist-packages)/|(?:^|/)lib/python3\.\d+/")

LIBRARIES = frozenset(
    {
        "torch", "torchvision", "torchaudio", "torchtext", "torchdata", "torchmetrics", "triton", "numpy",
        "scipy", "pandas", "PIL", "cv2", "sklearn", "matplotlib", "tqdm", "transformers", "datasets",
        "accelerate", "peft", "diffusers", "tokenizers", "huggingface_hub", "safetensors", "lightning",
        "lightning_fabric", "pytorch_lightning", "deepspeed", "megatron", "fairscale", "apex", "timm", "einops",
        "ray", "dask", "wandb", "tensorboard", "vllm", "sglang", "ignite", "tb_tidy_plugin", "flashinfer", "flash_attn",
        "xformers", "bitsandbytes", "torchrec", "fbgemm_gpu", "sgl_kernel", "torchao", "liger_kernel", "mmcv",
        "mmengine", "numba",
    }
)  # fmt: skip
"""Top-level packages whose `site-packages/` prefix the profiler strips from its paths."""

COMMON_USER_NAMES = frozenset({"code", "profile", "test", "trace", "statistics", "types", "queue", "secrets"})
"""Modules of the standard library whose names people also give to their own scripts."""

_LOOPS_OF_TORCH = ("Optimizer.", "enumerate(DataLoader)#")
"""Annotations around PyTorch's own loops."""


class _CallStack(msgspec.Struct):
    text: str = msgspec.field(name="Call stack", default="")


class Frame(msgspec.Struct, frozen=True):
    """One Python frame, as the recording names it.

    Attributes:
        file: path as recorded, usually relative to the script's directory.
        line: 1-based; with `precision` `definition` the line on which `function` is defined.
        own_code: False for torch, installed packages and the standard library.
        end_line: last line of the call or statement, None if only `line` is known.
        ties: equally likely lines, if the recording fits several; `line` and `end_line` enclose them.
        text: source text of `line`, empty if it was not read.
        compiled: of generated code, its pass; None for other code. A `definition` is then the function that was
            compiled.
        also: file and line of further places that a generated kernel computes.
    """

    file: str
    line: int
    function: str
    precision: Precision
    own_code: bool
    end_line: int | None = None
    ties: tuple[int, ...] = ()
    text: str = ""
    compiled: Pass | None = None
    also: tuple[tuple[str, int], ...] = ()


def stack_of(profile: Profile, row: int) -> list[Frame]:
    """Python frames around an event (and the event itself if it is one), innermost first."""
    names = (
        profile.table.names[profile.table.name[at]]
        for at in (row, *profile.ancestors(row))
        if profile.category(at) is Category.PYTHON
    )
    frames = _frames(names)
    if not frames and profile.has_call_stacks:
        return _recorded_stack(profile, row)
    return frames


def called_from(profile: Profile, frame: int, call: int) -> int | None:
    """The line on which the Python frame `frame` made the Python call `call`, None if none was recorded."""
    table = profile.table
    line, parent = int(table.called_from[call]), int(table.python_parent_id[call])
    is_its = parent in {ABSENT, int(table.python_id[frame])}  # a few calls are elsewhere in the tree
    return line if line != ABSENT and is_its else None


def _recorded_stack(profile: Profile, row: int) -> list[Frame]:
    """The `Call stack` that operators had in 2021 and have with `verbose=True`, innermost first."""
    for at in (row, *profile.ancestors(row)):
        if CALL_STACK_KEY in profile.table.args.text(at):
            return _frames(profile.table.args.decoded(np.array([at]), _CallStack)[0].text.split(";"))
    return []


def _frames(names: Iterable[str]) -> list[Frame]:
    return [frame for name in names if (frame := parse_frame(name)) is not None]


@lru_cache(maxsize=1 << 16)
def parse_frame(name: str) -> Frame | None:
    """A frame from its name (`train.py(12): step`); None for built-ins, modules and code that a compiler wrote.

    Nobody edits code that `torch.compile` generates: its events belong to the function that was compiled.
    """
    match = FRAME.fullmatch(name)
    return None if match is None else frame_of(match["file"], int(match["line"]), match["function"])


def is_own_code(name: str) -> bool | None:
    """True if an event's name is that of the user's own function; None if it does not name a function.

    False for the loops of PyTorch's optimizers and data loaders, whose annotations stand for their functions.
    """
    frame = parse_frame(name)
    return frame.own_code if frame else False if name.startswith(_LOOPS_OF_TORCH) else None


def frame_of(file: str, line: int, function: str) -> Frame | None:
    """A frame from the parts of its name. A function that resumes after a graph break begins on the line of that."""
    if file.startswith("<") or is_generated(file):
        return None
    if resumed := DYNAMO_RESUME.fullmatch(function):
        return Frame(file, int(resumed["line"]), resumed["function"], "definition", _is_own(file))
    return Frame(file, line, function, "definition", _is_own(file))


@lru_cache(maxsize=1 << 16)
def goes_on(name: str) -> bool:
    """True if a frame, by its name, is of a function that resumes after a graph break."""
    match = FRAME.fullmatch(name)
    return match is not None and DYNAMO_RESUME.fullmatch(match["function"]) is not None


def _is_own(file: str) -> bool:
    path = file.replace("\\", "/")
    if _INSTALLED.search(path):
        return False
    top = path.split("/", 1)[0].removesuffix(".py")
    return top not in LIBRARIES and (top not in sys.stdlib_module_names or top in COMMON_USER_NAMES)
