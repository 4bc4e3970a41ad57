"""Where a fix belongs: at the call that made the object whose option it sets, or in a trainer's options."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.analysis.constructors import LONGEST, where_to_edit
from tb_tidy_plugin.report.model import Place
from tb_tidy_plugin.rulekit.made import loader
from tb_tidy_plugin.sources.constructors import Made
from tests.support.drawn import draw, row_of

TEXT = """\
import torch
from torch import optim
from torch.utils.data import DataLoader
first = optim.Adam(a.parameters())
second = torch.optim.Adam(b.parameters())
loader = DataLoader(data)
held_out = DataLoader(rest)
def train(given):
    for batch in enumerate(loader):
        second.step()
        given.step()
"""

OPTIMIZER = Made("optimizer", "step", "torch.optim.Adam".__eq__, 'optim="adamw_torch_fused"')
LOADER = loader("dataloader_num_workers=3")


def place(line: int) -> Place:
    return Place(
        file="train.py", line=line, end_line=line, function="train", precision="exact", own_code=True, matches=1,
        duration_ns=1,
    )  # fmt: skip


def edit(line: int, made: Made = OPTIMIZER, text: str = TEXT, frame: str = "train.py(8): train") -> str:
    profile = draw(f"{frame} 0-900\n  aten::add_ 10-20")
    return where_to_edit(profile, row_of(profile, "aten::add_"), place(line), made, {"train.py": text.splitlines()}.get)


@pytest.mark.parametrize(
    ("line", "made", "said"),
    [
        pytest.param(10, OPTIMIZER, "Edit `train.py:5`, `second = torch.optim.Adam(b.parameters())`. ", id="optimizer"),
        pytest.param(9, LOADER, "Edit `train.py:6`, `loader = DataLoader(data)`. ", id="the loader of a loop"),
        pytest.param(10, LOADER, "Edit `train.py:6`, `loader = DataLoader(data)`. ", id="a line in that loop"),
        pytest.param(11, OPTIMIZER, "", id="what a caller gives, of which the module makes two"),
    ],
)
def test_the_call_that_made_what_the_line_uses(line: int, made: Made, said: str) -> None:
    assert edit(line, made) == said


def test_a_trainer_s_option_where_a_trainer_makes_the_object() -> None:
    trainer = "transformers/trainer.py(2200): train"
    assert edit(10, LOADER, frame=trainer).startswith("Pass `dataloader_num_workers=3` to `TrainingArguments`, since")
    assert edit(10, frame=trainer).startswith(
        'Pass `optim="adamw_torch_fused"` to `TrainingArguments`, since `Trainer`'
    )


def test_nothing_for_text_that_is_not_python() -> None:
    assert edit(10, text="def (:\n" * 12) == ""


def test_a_long_line_is_cut() -> None:
    said = edit(10, text=TEXT.replace("b.parameters()", f"b.parameters(), {'x' * 200}"))
    assert len(said) < LONGEST + 40
    assert "…`" in said
