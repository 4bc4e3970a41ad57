"""An assistant that does what the skill file says, word for word, and nothing else; and what that costs it.

`python -m tests.ask` prints the table of docs/agents.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.ask.folder import Folder
from tb_tidy_plugin.ask.pages import tokens_in
from tb_tidy_plugin.ask.questions import answer
from tb_tidy_plugin.rulekit.testing.drawn import draw_into
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.trace.cache import Cache
from tests.accuracy.corpus import CORPUS

SAMPLES = Path(__file__).resolve().parents[2] / "sample_runs"

DRAWN = (
    "convolution-layout-converted",
    "ddp-buffers-broadcast",
    "ddp-gradients-copied",
    "exposed-communication",
    "fp32-matmul-no-tf32",
    "host-sync-scalar-readback",
    "host-work-holds-device",
    "pageable-h2d-copy",
    "tensor-core-shape-misaligned",
)
"""Drawn programs of the corpus, each with the one pattern that it is named after."""

RECORDED = {"image_classifier_untidy": "dataloader-num-workers-zero"}
"""A recording of this repository with the rule of its largest loss, as its README measured it."""


@dataclass(frozen=True)
class Way:
    """How the assistant came to a cause.

    Attributes:
        rule: of the finding that it would fix first.
        answers: to all of its calls, in their order.
        seconds: of the longest call.
    """

    rule: str
    answers: tuple[bytes, ...]
    seconds: float

    @property
    def tokens(self) -> int:
        return sum(map(tokens_in, self.answers))


def cause_in(ask: Callable[[dict[str, object]], bytes]) -> Way:
    """Runs, ledger, findings, and the first of these."""
    answers: list[bytes] = []
    slowest = 0.0

    def asked(**question: object) -> Any:  # noqa: ANN401 - JSON
        nonlocal slowest
        began = time.perf_counter()
        answers.append(ask(question))
        slowest = max(slowest, time.perf_counter() - began)
        return decode(answers[-1])

    trace = rows_of(asked(question="runs"))[0]["trace"]
    asked(question="ledger", path=trace)
    first = rows_of(asked(question="findings", path=trace))[0]
    found = asked(question="finding", path=trace, finding=first["finding"])
    return Way(found["rule"], tuple(answers), slowest)


def rows_of(found: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON
    """Rows with the names of their columns."""
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def folder_at(path: Path, cache: Path) -> Folder:
    """A folder whose sources lie in it."""
    return Folder(path.resolve(), Job(source_roots=(path,), cache=Cache(cache).usable()))


def asking(folder: Folder) -> Callable[[dict[str, object]], bytes]:
    """Asks about a folder as `tb-tidy ask` does."""
    return lambda question: answer(msgspec.json.encode(question), folder)


def recording(name: str, into: Path) -> Path:
    """The folder of a recording; a drawn one is written into `into`."""
    if name in RECORDED:
        return SAMPLES / name
    folder = into / name
    folder.mkdir()
    draw_into(folder, (CORPUS / name / "slow.txt").read_text(encoding="utf-8"))
    return folder


def causes() -> dict[str, str]:
    """The recordings with the rule that each of them is about."""
    return {name: name for name in DRAWN} | RECORDED
