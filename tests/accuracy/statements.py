"""The statements that rules offer for the corpus' slow programs, and which rules have none."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.rulekit import Benchmark
from tb_tidy_plugin.rulekit.testing.drawn import draw_into
from tb_tidy_plugin.trace.files import find_traces
from tests.accuracy.corpus import Program, programs
from tests.accuracy.processes import record_in

WITHOUT_STATEMENTS = {
    "anomaly-mode-enabled": "a mode of the whole program",
    "collective-straggler": "several ranks",
    "convolution-layout-converted": "the whole model",
    "dataloader-starvation": "more workers are a matter of the machine that trains",
    "ddp-buffers-broadcast": "several ranks",
    "ddp-gradients-copied": "several ranks",
    "decoder-pieces-written-out": "kernels that only a device has",
    "eager-operators-in-compiled-graph": "the user's own function",
    "exposed-communication": "several ranks",
    "fp32-on-ordinary-cores": "the whole model",
    "gpu-idle-host-bound": "any host code",
    "host-work-holds-device": "any host code",
    "kernel-built-in-step": "the user's own function",
    "kernels-far-from-limit": "kernels that only the user's device has",
    "small-compiled-regions": "the user's own functions",
    "torch-compile-graph-break": "the user's own function",
    "torch-compile-recompilation": "the user's own function",
}
"""Rules without a pair, and what would have to be in it."""

DRAWN_WITHOUT = {"host-sync-scalar-readback/slow.txt"}  # a wait costs what the device idles afterwards

SLOW = [each for each in programs() if each.kind == "slow" and each.ranks == 1]
OF_RULES = [each for each in SLOW if each.rule not in WITHOUT_STATEMENTS and each.name not in DRAWN_WITHOUT]


def pairs_of(program: Program) -> list[Benchmark]:
    """The pairs of the findings of the program's own rule."""
    with TemporaryDirectory(prefix="torchtidy-accuracy-") as name:
        if program.is_drawn:
            draw_into(Path(name), program.path.read_text(encoding="utf-8"))
        else:
            record_in(Path(name), program)
        traced = [each for file in find_traces(Path(name)) for each in read_file(file, Job()).traced.values()]
    return [each.pair for each in traced if each.finding.rule == program.rule and each.pair]
