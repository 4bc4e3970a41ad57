"""The pairs for a GPU, rehearsed on the CPU at tiny sizes: both programs run and compute the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tb_tidy_plugin.rules import catalogue
from tb_tidy_plugin.words.causes import Cause
from tests.gpu_proof.corpus import KINDS, REHEARSED, Pair, PairError, pairs
from tests.gpu_proof.worker import built, difference, values

STEPS = 2
SEVERAL_GPUS = {"exposed-communication", "collective-straggler"}
DEVICE_RULES = {
    "convolution-layout-converted", "decoder-pieces-written-out", "fp32-matmul-no-tf32", "fp32-on-ordinary-cores",
    "gpu-idle-host-bound", "host-work-holds-device", "pageable-h2d-copy", "tensor-core-shape-misaligned",
    "tensor-created-on-cpu-then-moved",
}  # fmt: skip
"""Rules whose patterns only a device shows."""


@pytest.fixture(autouse=True, scope="module")
def settings_of_torch() -> Iterator[None]:
    """What programs set for their own process is undone here, where they share one."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    flags = torch.backends.cuda.matmul, torch.backends.cudnn
    before = [flag.allow_tf32 for flag in flags]
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    for flag, value in zip(flags, before, strict=True):
        flag.allow_tf32 = value
    torch._dynamo.reset()  # noqa: SLF001 - its public name


@pytest.mark.torch
@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: pair.name)
def test_both_programs_compute_the_same(pair: Pair) -> None:
    results = []
    for kind in KINDS:
        step = built(pair.module(kind), "cpu", pair.sizes[REHEARSED])
        results.append([values(step()) for _ in range(STEPS)])
    assert all(abs(value).max() > 0 for value in results[0])
    assert difference(*results) <= pair.tolerance


def test_there_are_thirty_and_every_device_rule_has_one() -> None:
    known = {rule.name() for rule in catalogue()}
    own = {pair.rule for pair in pairs() if pair.rule}
    assert len(pairs()) == 30
    assert own <= known
    assert own >= DEVICE_RULES
    assert not own & SEVERAL_GPUS
    assert {pair.cause for pair in pairs()} <= {cause.word for cause in Cause}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('RULE = ""\nCAUSE = "copy"\n', "SIZES are tiny, small, middle, large"),
        ('RULE = 1\nCAUSE = "copy"\nSIZES = {}\n', "are texts"),
        ("", "are texts"),
    ],
)
def test_a_pair_says_what_it_is(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "slow.py").write_text(text)
    with pytest.raises(PairError, match=r"odd has no fixed\.py"):
        pairs(tmp_path)
    (tmp_path / "odd" / "fixed.py").touch()
    with pytest.raises(PairError, match=problem):
        pairs(tmp_path)
