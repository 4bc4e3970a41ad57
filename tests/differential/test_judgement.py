"""What the rules say of real recordings: the list that docs/judgement.md judges, so that a change in a rule shows."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tests.support.recordings import ROOT, shared, shared_names

LOOP, ONE_BY_ONE, EXPOSED = "python-loop-tensor-indexing", "optimizer-single-tensor", "exposed-communication"
IDLE, ZERO, PAGEABLE = "gpu-idle-host-bound", "zero-grad-memset", "pageable-h2d-copy"
FLOAT32 = "fp32-on-ordinary-cores"

FOUND: dict[str, list[str]] = {
    "traces/a100_ddp8_control": [EXPOSED, "host-sync-scalar-readback"],
    "traces/b200_eager": [IDLE, "all-reduce-between-copies"],
    "traces/cpu_gloo_rank34": [EXPOSED, ONE_BY_ONE],
    "traces/mi250_toy": [IDLE, "tensor-created-on-cpu-then-moved"],
    "traces/mi300_ddp8_resnet_checkpoint": [EXPOSED, "convolution-layout-converted"],
    "traces/mi300_sglang_prefill_decode": ["product-slower-than-sibling"],
    "traces/ranks128_sampled": [EXPOSED] * 5,
    "traces/v100_2021_resnet50_workers0": ["dataloader-num-workers-zero", FLOAT32, ONE_BY_ONE, PAGEABLE, ZERO],
    "traces/v100_2021_resnet50_workers4": [FLOAT32, IDLE, ONE_BY_ONE, PAGEABLE, ZERO],
    "traces/v100_ddp2_test": [EXPOSED, FLOAT32],
    "traces/v100_memory_compile_216k": [EXPOSED, IDLE, ONE_BY_ONE, ZERO],
    "parity/loop_iadd_1": [LOOP],
    "parity/loop_imul_1": [LOOP],
    "parity/loop_setitem_1": [LOOP],
    "parity/loop_slice_setitem_1": [LOOP],
    "lines/diffusion": [ONE_BY_ONE],
    "lines/vision_resnet": [ONE_BY_ONE],
}
"""The rules of the findings by recording; those that are not named have none."""

RECORDINGS = [f"{folder}/{name}" for folder in ("traces", "parity", "lines") for name in shared_names(folder)]


@pytest.mark.parametrize("recording", RECORDINGS)
def test_findings(recording: str) -> None:
    report = analyze_path(shared(recording), Job())
    assert not report.problems
    findings = [finding for run in report.runs for finding in run.findings]
    findings += [finding for run in report.runs for profile in run.profiles for finding in profile.findings]
    found = [finding.rule for finding in findings]
    assert sorted(found) == sorted(FOUND.get(recording, []))


def test_the_page_judges_each_of_them() -> None:
    page = (ROOT / "docs" / "judgement.md").read_text(encoding="utf-8")
    judged, _, _ = page.partition("## What silence means")
    assert all(f"`{rule}`" in judged or f"`{rule}`," in judged for rules in FOUND.values() for rule in rules)
