"""The line inside the function, found by reading the source beside the recording."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from msgspec.structs import replace

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, row_of
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.sources.frames import Frame

SOURCE = """\
import torch


def step(x, w):
    y = torch.relu(x) + 1
    for row in range(3):
        y = y * w
    return (
        y
        .mean()
        .item()
    )
"""

RECORDED = """
train.py(4): step                                     0-900
  <built-in method relu of type object at 0x1>        10-50
    aten::relu                                        20-40
  aten::add                                           60-90
  aten::mul                                           100-190
  aten::mul                                           200-290
  aten::mul                                           300-390
  <built-in method mean of Tensor object at 0x2>      400-490
    aten::mean                                        410-480
      aten::sum                                       420-470
  <built-in method item of Tensor object at 0x3>      500-590
    aten::item                                        510-580
"""


def aligner(profile: Profile, source: str | None = SOURCE, file: str = "train.py") -> Aligner:
    return Aligner(profile, lambda name: source.splitlines() if source is not None and name == file else None)


def place(profile: Profile, name: str, nth: int = 0, source: str | None = SOURCE) -> Frame:
    found = aligner(profile, source).place_of(row_of(profile, name, nth))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "nth", "line"),
    [
        ("aten::relu", 0, 5),
        ("aten::add", 0, 5),
        ("aten::mul", 0, 7),
        ("aten::mul", 2, 7),
        ("aten::mean", 0, 10),
        ("aten::sum", 0, 10),
        ("aten::item", 0, 11),
        ("<built-in method item of Tensor object at 0x3>", 0, 11),
    ],
)
def test_the_line_of_the_call(name: str, nth: int, line: int) -> None:
    found = place(draw(RECORDED), name, nth)
    assert (found.file, found.function, found.line, found.precision) == ("train.py", "step", line, "aligned")
    assert found.ties == ()
    assert found.text == SOURCE.splitlines()[line - 1].strip()


def test_a_statement_over_several_lines_has_an_end() -> None:
    assert place(draw(RECORDED), "aten::item").end_line == 11
    assert place(draw(RECORDED), "aten::add").end_line == 5


def test_the_function_itself_stays_where_it_is_defined() -> None:
    found = place(draw(RECORDED), "train.py(4): step")
    assert (found.line, found.precision) == (4, "definition")


def test_the_lines_of_a_function_that_led_to_certain_events() -> None:
    profile = draw(RECORDED)
    frame, add, mul = (row_of(profile, name) for name in ("train.py(4): step", "aten::add", "aten::mul"))
    found = aligner(profile).place_of(frame, [add, mul])
    assert found is not None
    assert (found.line, found.end_line, found.precision) == (5, 7, "aligned")
    inside = aligner(profile).place_of(frame, [row_of(profile, "aten::sum")])
    assert inside is not None
    assert inside.line == 10


def test_device_work_has_the_line_that_launched_it() -> None:
    recorded = RECORDED.replace("200-290", "200-290  kernel=mul_kernel@250-350")
    assert place(draw(recorded, A100), "mul_kernel").line == 7


@pytest.mark.parametrize(
    "source",
    [
        None,
        "",
        "def step(x, w:\n",
        "x = '\0'",
        SOURCE.replace("def step", "def other"),
        "\n\n" + SOURCE,  # moved since
        "import torch\n\n\ndef step(x, w):\n    return [print(each) for each in open(x)]\n",  # rewritten since
        "(" * 500 + SOURCE,
    ],
    ids=["unreadable", "empty", "no Python", "zero byte", "renamed", "moved", "rewritten", "too deep"],
)
def test_a_source_that_does_not_fit_leaves_the_function(source: str | None) -> None:
    found = place(draw(RECORDED), "aten::mean", source=source)
    assert (found.line, found.precision, found.ties) == (4, "definition", ())


def test_lines_that_are_as_likely_are_all_named() -> None:
    source = "def step(x, fast):\n    if fast:\n        y = x.abs()\n    else:\n        y = x.abs()\n    return y\n"
    profile = draw(
        "train.py(1): step  0-900\n  <built-in method abs of Tensor object at 0x1>  10-50\n    aten::abs  20-40"
    )
    found = place(profile, "aten::abs", source=source)
    assert (found.ties, found.line, found.end_line, found.precision) == ((3, 5), 3, 5, "aligned")


def test_what_no_site_explains_stays_with_the_function() -> None:
    stranger = RECORDED + "  aten::cumsum                                        600-700\n"
    profile = draw(stranger)
    assert place(profile, "aten::cumsum").precision == "definition"
    assert place(profile, "aten::item").line == 11


def test_literals_tell_operators_apart() -> None:
    source = "def step(x):\n    a = x * 2\n    b = x * 0.5\n    return b\n"
    profile = draw("train.py(1): step  0-900\n  aten::mul  100-190  dims=4,  types=float,double")
    assert place(profile, "aten::mul", source=source).line == 3


def test_wrappers_are_looked_through() -> None:
    source = "def step(optimizer, loss):\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
    profile = draw("""
        train.py(1): step                              0-900
          torch/_compile.py(42): inner                 10-50
            torch/optim/optimizer.py(1000): zero_grad  20-40
          torch/_tensor.py(566): backward              60-90
          torch/optim/optimizer.py(509): wrapper       100-400
            torch/optim/sgd.py(90): step               110-390
              aten::_foreach_add_                      120-300
    """)
    assert place(profile, "aten::_foreach_add_", source=textwrap.dedent(source)).line == 4


def test_annotations_are_looked_through() -> None:
    source = "def step(x):\n    with record_function('forward'):\n        y = x @ x\n    return y.sum()\n"
    profile = draw("""
        train.py(1): step                                 0-900
          torch/autograd/profiler.py(780): __init__       10-20
          torch/autograd/profiler.py(789): __enter__      30-40
          ## forward ##                                   100-400
            aten::matmul                                  120-300
          torch/autograd/profiler.py(795): __exit__       410-420
          <built-in method sum of Tensor object at 0x1>   500-600
            aten::sum                                     510-590
    """)
    assert place(profile, "aten::matmul", source=source).line == 3


def test_frames_of_installed_code_are_not_read() -> None:
    asked: list[str] = []

    def sources(name: str) -> list[str] | None:
        asked.append(name)
        return None

    profile = draw("torch/nn/functional.py(9): relu  0-90\n  aten::relu  10-50")
    found = Aligner(profile, sources).place_of(row_of(profile, "aten::relu"))
    assert found is not None
    assert (found.precision, asked) == ("definition", [])


def test_each_file_is_read_once() -> None:
    asked: list[str] = []

    def sources(name: str) -> list[str] | None:
        asked.append(name)
        return SOURCE.splitlines()

    profile = draw(RECORDED)
    found = Aligner(profile, sources)
    for row in range(profile.tree.size):
        found.place_of(row)
    assert asked == ["train.py"]


def test_a_frame_that_was_open_goes_on_from_the_line_that_it_carries() -> None:
    source = "def train(x):\n    x = x.abs()\n    for _ in range(9):\n        x.sum()\n        x = x.abs()\n"
    profile = draw("""
        train.py(5): train                              0-900
          <built-in method abs of Tensor object at 0x1>  10-50
            aten::abs                                   20-40
          <built-in method sum of Tensor object at 0x1>  60-90
            aten::sum                                   70-80
    """)
    assert [place(profile, name, source=source).line for name in ("aten::abs", "aten::sum")] == [5, 4]


class TestTheStack:
    """The user's own functions around an event, each with the line that leads on."""

    SOURCE = (
        "import lib\n\n\ndef main(x):\n    y = x + 1\n    step(y)\n\n\ndef step(y):\n    lib.twice(y)\n    return y\n"
    )
    DRAWN = """
        train.py(4): main                  0-900
          aten::add                        10-50
          train.py(9): step                100-800
            torch/lib.py(1): twice         110-700
              aten::mul                    120-690
    """

    def stack(self, name: str) -> list[tuple[int, str, str]]:
        profile = draw(self.DRAWN)
        stack = aligner(profile, self.SOURCE).stack_of(row_of(profile, name))
        return [(frame.line, frame.function, frame.precision) for frame in stack]

    def test_names_the_line_of_each_call_and_no_library(self) -> None:
        assert self.stack("aten::mul") == [(10, "step", "aligned"), (6, "main", "aligned")]

    def test_of_a_function_begins_where_it_is_defined(self) -> None:
        assert self.stack("train.py(9): step") == [(9, "step", "definition"), (6, "main", "aligned")]

    def test_without_sources_names_functions(self) -> None:
        profile = draw(self.DRAWN)
        stack = aligner(profile, None).stack_of(row_of(profile, "aten::mul"))
        assert [(frame.line, frame.precision) for frame in stack] == [(9, "definition"), (4, "definition")]

    def test_of_work_whose_cause_is_unknown_is_empty(self) -> None:
        profile = draw(RECORDED.replace("200-290", "200-290  kernel=mul_kernel@250-350"), A100)
        kernel = row_of(profile, "mul_kernel")
        assert [frame.line for frame in aligner(profile).stack_of(kernel)] == [7]
        profile.launched_by[kernel] = -1
        assert aligner(profile).stack_of(kernel) == []


class TestRecordedLines:
    """The capture side file, and newer traces, know lines of calls; operators between them are still aligned."""

    def profile(self, *lines: tuple[str, int], parent: int | None = None) -> Profile:
        return self.of(draw(RECORDED), *lines, parent=parent)

    def of(self, profile: Profile, *lines: tuple[str, int], parent: int | None = None) -> Profile:
        table = profile.table
        called_from, parents = table.called_from.copy(), table.python_parent_id.astype(np.int64)
        for name, line in lines:
            row = row_of(profile, name)
            called_from[row] = line
            parents[row] = table.python_id[0] if parent is None else parent
        return Profile(replace(table, called_from=called_from, python_parent_id=parents))

    def test_they_are_exact_without_any_source(self) -> None:
        profile = self.profile(("<built-in method mean of Tensor object at 0x2>", 10))
        for name in ("aten::mean", "aten::sum"):
            found = place(profile, name, source=None)
            assert (found.line, found.precision, found.function) == (10, "exact", "step")

    def test_they_go_before_what_the_source_seems_to_say(self) -> None:
        assert place(self.profile(("<built-in method relu of type object at 0x1>", 99)), "aten::relu").line == 99

    def test_not_those_that_another_frame_called(self) -> None:
        """A few events hang below another frame in the tree than they were recorded under."""
        profile = self.profile(("<built-in method relu of type object at 0x1>", 99), parent=77)
        assert (place(profile, "aten::relu").line, place(profile, "aten::relu").precision) == (5, "aligned")

    def test_each_line_costs_what_was_called_from_it(self) -> None:
        profile = self.profile(("<built-in method relu of type object at 0x1>", 5))
        frame = place(profile, "aten::relu")
        calls = dict(Aligner(profile, lambda _: None).calls_in(0, frame))
        assert {profile.name(row): call.line for row, call in calls.items()} == {
            "<built-in method relu of type object at 0x1>": 5
        }

    def test_they_hold_the_operators_between_them_in_place(self) -> None:
        """Two equal branches are told apart by the call beside the operator."""
        source = (
            "def step(x, c):\n    if c:\n        y = f(x)\n        y = y * 2\n"
            "    else:\n        y = f(x)\n        y = y * 2\n    return y\n"
        )
        recorded = "train.py(1): step 0-900\n  <built-in method f of type object at 0x1> 10-50\n  aten::mul 60-90\n"
        for line, product in ((3, 4), (6, 7)):
            profile = self.of(draw(recorded), ("<built-in method f of type object at 0x1>", line))
            found = place(profile, "aten::mul", source=source)
            assert (found.line, found.precision, found.ties) == (product, "aligned", ())
