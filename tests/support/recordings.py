"""Recordings outside the repository: real device traces and upstream's answers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("TIDY_SHARED", ROOT.parent / "shared"))


def shared(name: str) -> Path:
    """The shared file or folder `name` (`traces/b200_eager`); skips the test, visibly, if it is absent."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not here: set TIDY_SHARED to the folder that holds it")
    return path


COUNTED_ONCE = frozenset(
    {
        "a100_alexnet_startup", "a100_simple_add_startup", "h100_qwen_generate", "h100_timesformer_pipeline",
        "h100_vit_pipeline", "mi300_bert_pipeline", "mi300_owlv2_pipeline", "mi300_sglang_graph_capture",
        "mi300_sglang_graph_decode", "mi300_xdit_flux_capture", "mi300_xdit_flux_profile", "mtia_train",
        "rtx2080ti_linear", "rtx4060_default_schedule", "t4_resnet50_fp32", "t4_toy_kernels", "v100_ddp_resnet_ns",
        "v100_dlrm_8ranks",
    }
)  # fmt: skip
"""Shared recordings that only a few tests read, those marked `any_recording`: the others have enough with
those before them. `tests/ledger/test_recordings.py` checks their figures against their JSON.
"""


STANDS_FOR = {
    "b200_eager": ["mi300_sglang_prefill_decode", "mi300_ddp8_resnet_checkpoint"],
    "v100_2021_resnet50_workers4": ["v100_2021_resnet50_workers0", "v100_memory_compile_216k"],
    "v100_ddp2_test": ["a100_ddp8_control"],
}
"""Larger recordings by one that has everything they have; tests marked `sampled` leave the larger ones out."""

LEFT_OUT = frozenset(name for names in STANDS_FOR.values() for name in names)


def shared_names(folder: str) -> list[str]:
    """Names in the shared `folder`, for parametrizing; a placeholder that skips if it is absent."""
    path = SHARED / folder
    return sorted(entry.name for entry in path.iterdir() if entry.is_dir()) if path.is_dir() else ["absent"]
