"""Where a fix belongs: at the call that made the object whose option it sets, or in a trainer's options."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.analysis.constructors import LONGEST_SHOWN_LINE, option_of_trainer, where_to_edit
from tb_tidy_plugin.report.model import Place
from tb_tidy_plugin.rulekit.made import loader, mixed_precision
from tb_tidy_plugin.rulekit.testing import draw, row_of
from tb_tidy_plugin.sources.constructors import Made

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


IMPORTS = "from torch import optim\nfrom torch.utils.data import DataLoader\n"


@pytest.mark.parametrize(
    ("text", "line", "made", "found"),
    [
        pytest.param("def build(m):\n  return optim.Adam(m)\no = build(1)\no.step()\n", 6, OPTIMIZER, 4, id="function"),
        pytest.param(
            "def build(m):\n  return m, optim.Adam(m)\nmodel, o = build(1)\no.step()\n", 6, OPTIMIZER, 4, id="one item"
        ),
        pytest.param(
            "class A:\n  def build(self):\n    return optim.Adam(m)\no = A().build()\no.step()\n", 7, OPTIMIZER, 5,
            id="a method",
        ),
        pytest.param(
            "o = optim.Adam(m)\nrest = optim.Adam(n)\nm, o = accelerator.prepare(m, o)\no.step()\n", 6, OPTIMIZER, 3,
            id="Accelerate",
        ),
        pytest.param(
            "def train(model, loader):\n  for batch in loader:\n    pass\n"
            "some = DataLoader(a)\nothers = DataLoader(b)\ntrain(m, some)\ntest(m, loader=others)\n", 4, LOADER, 6,
            id="what the caller gives",
        ),
        pytest.param(
            "class T:\n  def __init__(self, o):\n    self.o = o\n  def fit(self):\n    self.o.step()\n"
            "first = optim.Adam(a)\nlast = optim.Adam(b)\nT(o=last).fit()\n", 7, OPTIMIZER, 9, id="what a class gets",
        ),
        pytest.param("o = other()\no.step()\nrest = optim.Adam(m)\n", 4, OPTIMIZER, None, id="of another library"),
        pytest.param("o = o\no.step()\n", 4, OPTIMIZER, None, id="itself"),
        pytest.param(
            "def f(o):\n  o.step()\nf(optim.Adam(a))\nf(optim.Adam(b))\n", 4, OPTIMIZER, None, id="two callers"
        ),
    ],
)  # fmt: skip
def test_through_what_hands_the_object_on(text: str, line: int, made: Made, found: int | None) -> None:
    said = edit(line, made, IMPORTS + text)
    assert (said == "") if found is None else said.startswith(f"Edit `train.py:{found}`, ")


MODEL = "import torch\nclass Model:\n  def configure(self):\n    return torch.optim.Adam(self.parameters())\n"
USES = {
    "a method": "from model import Model\no = Model().configure()\no.step()\n",
    "what a caller gives": "x = 1\ndef train(o):\n  o.step()\n",
    "an attribute": "x = 1\nx = 2\nagent.o.step()\n",
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize(
    ("others", "found"),
    [
        pytest.param({"model.py": MODEL}, "model.py:4", id="in one other file"),
        pytest.param({"model.py": MODEL, "old.py": MODEL}, None, id="in two"),
        pytest.param({"model.py": "x = 1\n"}, None, id="in none"),
        pytest.param({"model.py": "def (:\n"}, None, id="not Python"),
    ],
)
def test_in_the_job_s_other_files(use: str, others: dict[str, str], found: str | None) -> None:
    frames = "".join(f"\n  {name}(1): run {30 + 9 * at}-{35 + 9 * at}" for at, name in enumerate(others))
    profile = draw(f"train.py(1): train 0-900\n  aten::add_ 10-20{frames}")
    texts = {name: text.splitlines() for name, text in {"train.py": use, **others}.items()}
    said = where_to_edit(profile, row_of(profile, "aten::add_"), place(3), OPTIMIZER, texts.get)
    assert said == (f"Edit `{found}`, `return torch.optim.Adam(self.parameters())`. " if found else "")


def test_a_file_that_did_not_run_is_not_read() -> None:
    profile = draw("train.py(1): train 0-900\n  aten::add_ 10-20")
    texts = {"train.py": USES["a method"].splitlines(), "model.py": MODEL.splitlines()}
    assert where_to_edit(profile, row_of(profile, "aten::add_"), place(3), OPTIMIZER, texts.get) == ""


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ("transformers/trainer.py(2200): train", "Pass `bf16=True` to `TrainingArguments`"),
        ("lightning/pytorch/trainer/trainer.py(560): fit", 'Pass `precision="bf16-mixed"` to `Trainer`'),
        ("pytorch_lightning/trainer/call.py(42): _call", 'Pass `precision="bf16-mixed"` to `Trainer`'),
        ("accelerate/utils/operations.py(9): forward", 'Pass `mixed_precision="bf16"` to `Accelerator`'),
        ("train.py(9): accelerate", ""),
    ],
)
def test_an_option_of_the_library_that_trains(frame: str, said: str) -> None:
    profile = draw(f"{frame} 0-900\n  aten::add_ 10-20")
    assert option_of_trainer(profile, row_of(profile, "aten::add_"), mixed_precision("bfloat16")) == said


def test_nothing_for_text_that_is_not_python() -> None:
    assert edit(10, text="def (:\n" * 12) == ""


def test_a_long_line_is_cut() -> None:
    said = edit(10, text=TEXT.replace("b.parameters()", f"b.parameters(), {'x' * 200}"))
    assert len(said) < LONGEST_SHOWN_LINE + 40
    assert "…`" in said
