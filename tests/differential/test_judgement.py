"""What the rules say of real recordings: the list that docs/judgement.md judges, so that a change in a rule shows."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tests.support.one_account import check_figures
from tests.support.recordings import ROOT, shared, shared_names

LOOP, ONE_BY_ONE, EXPOSED = "python-loop-tensor-indexing", "optimizer-single-tensor", "exposed-communication"
IDLE, ZERO, PAGEABLE = "gpu-idle-host-bound", "zero-grad-memset", "pageable-h2d-copy"
FLOAT32, FAR = "fp32-on-ordinary-cores", "kernels-far-from-limit"
DECODER, ATTENTION = "decoder-pieces-written-out", "unfused-attention"
CREATED, ONCE = "tensor-created-on-cpu-then-moved", "recording-not-steady"
HOST_WORK, READ, LOADER = "host-work-holds-device", "host-sync-scalar-readback", "dataloader-num-workers-zero"
BUFFERS, GRADIENTS = "ddp-buffers-broadcast", "ddp-gradients-copied"

FOUND: dict[str, list[str]] = {
    "traces/a100_ddp8_control": [EXPOSED],
    "traces/a100_alexnet_startup": [ONCE],
    "traces/a100_simple_add_startup": [ONCE],
    "traces/b200_eager": [IDLE, "all-reduce-between-copies"],
    "traces/cpu_gloo_rank34": [EXPOSED, ONE_BY_ONE],
    "traces/h100_qwen_generate": [DECODER, DECODER, DECODER, "hidden-contiguous-copy"],
    "traces/h100_timesformer_pipeline": [ATTENTION, HOST_WORK, PAGEABLE, "tensor-core-shape-misaligned"],
    "traces/h100_vit_pipeline": [IDLE],
    "traces/mi250_toy": [IDLE, ONCE, CREATED],
    "traces/mi300_bert_pipeline": [IDLE],
    "traces/mi300_compile_triton": [FAR, FAR],
    "traces/mi300_ddp8_resnet_checkpoint": [BUFFERS, EXPOSED, GRADIENTS, "convolution-layout-converted"],
    "traces/mi300_owlv2_pipeline": [LOADER, ATTENTION],
    "traces/mi300_sglang_graph_capture": ["device-mode-intercepts-calls", ONCE],
    "traces/mi300_sglang_graph_decode": [READ],
    "traces/mi300_sglang_prefill_decode": ["product-slower-than-sibling"],
    "traces/mi300_xdit_flux_capture": [ONCE],
    "traces/mi300_xdit_flux_profile": [ATTENTION, DECODER, HOST_WORK],
    "traces/mtia_train": [ONE_BY_ONE],
    "traces/ranks128_sampled": [EXPOSED] * 5,
    "traces/rtx2080ti_linear": [FLOAT32, IDLE, ZERO],
    "traces/t4_resnet50_fp32": [FLOAT32],
    "traces/t4_toy_kernels": [CREATED, "constant-rebuilt-every-step"],
    "traces/v100_2021_resnet50_workers0": [LOADER, FLOAT32, ONE_BY_ONE, PAGEABLE, ZERO],
    "traces/v100_2021_resnet50_workers4": [FLOAT32, IDLE, ONE_BY_ONE, PAGEABLE, ZERO],
    "traces/v100_ddp2_test": [EXPOSED, FLOAT32],
    "traces/v100_ddp_resnet_ns": [BUFFERS, FLOAT32, GRADIENTS],
    "traces/v100_dlrm_8ranks": [EXPOSED] * 13 + [IDLE, LOADER, ONE_BY_ONE] * 8 + [READ] * 7,
    "traces/v100_memory_compile_216k": [EXPOSED, IDLE, ONE_BY_ONE, ZERO],
    "lines/rl_reinforce": ["distribution-arguments-validated"] * 2,
    "parity/loop_iadd_1": [LOOP],
    "parity/loop_imul_1": [LOOP],
    "parity/loop_setitem_1": [LOOP],
    "parity/loop_slice_setitem_1": [LOOP],
    "lines/diffusion": [ONE_BY_ONE],
    "lines/vision_resnet": [ONE_BY_ONE],
}
"""The rules of the findings by recording; those that are not named have none."""

FIRST: dict[str, str] = {
    "traces/a100_alexnet_startup": ONCE,
    "traces/a100_simple_add_startup": ONCE,
    "traces/h100_qwen_generate": DECODER,
    "traces/h100_timesformer_pipeline": HOST_WORK,
    "traces/h100_vit_pipeline": IDLE,
    "traces/mi300_bert_pipeline": IDLE,
    "traces/mi300_owlv2_pipeline": LOADER,
    "traces/mi300_sglang_graph_capture": ONCE,
    "traces/mi300_xdit_flux_capture": ONCE,
    "traces/mi300_xdit_flux_profile": HOST_WORK,
    "traces/rtx2080ti_linear": IDLE,
    "traces/t4_resnet50_fp32": FLOAT32,
    "traces/t4_toy_kernels": CREATED,
    "traces/v100_ddp_resnet_ns": FLOAT32,
    "traces/v100_dlrm_8ranks": IDLE,
}
"""The rule of what somebody who read the recording by hand would do first; it is said first, too."""

RECORDINGS = [f"{folder}/{name}" for folder in ("traces", "parity", "lines") for name in shared_names(folder)]


@pytest.mark.any_recording
@pytest.mark.parametrize("recording", RECORDINGS)
def test_findings(recording: str) -> None:
    report = analyze_path(shared(recording), Job())
    assert not report.problems
    outcomes = [outcome for run in report.runs for profile in run.profiles for outcome in profile.outcomes]
    assert [outcome for outcome in outcomes if outcome.status == "failed"] == []
    findings = [finding for run in report.runs for finding in run.findings]
    findings += [finding for run in report.runs for profile in run.profiles for finding in profile.findings]
    found = [finding.rule for finding in findings]
    assert sorted(found) == sorted(FOUND.get(recording, []))
    assert recording not in FIRST or found[0] == FIRST[recording]
    for profile in (profile for run in report.runs for profile in run.profiles):
        check_figures(profile)


def test_the_page_judges_each_of_them() -> None:
    page = (ROOT / "docs" / "judgement.md").read_text(encoding="utf-8")
    judged, _, _ = page.partition("## Correct silence")
    assert all(f"`{rule}`" in judged or f"`{rule}`," in judged for rules in FOUND.values() for rule in rules)
