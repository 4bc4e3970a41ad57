"""The alignment under sources that it was not made for: edited since, huge, deep, of another Python, or random."""

from __future__ import annotations

import ast
import gc
import random
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import draw, row_of
from tb_tidy_plugin.sources.align import DEFINITIONS, FRAMES, Aligner
from tb_tidy_plugin.sources.automaton import automaton_of
from tb_tidy_plugin.sources.frames import Frame
from tb_tidy_plugin.sources.observed import Observation
from tb_tidy_plugin.sources.paths import MOST_OBSERVATIONS, Paths
from tb_tidy_plugin.sources.scalars import Scalars
from tb_tidy_plugin.sources.sites import MOST_SITES, TooLargeError
from tb_tidy_plugin.trace.kineto import read_trace
from tests.lines.corpus import HARD
from tests.support.recordings import ROOT

WRONG_LIMIT = 0.01

# Sources that were edited since the recording


@cache
def sample(name: str) -> tuple[Profile, str, tuple[str, ...]]:
    """A recorded run, its script's name and lines."""
    folder = ROOT / "sample_runs" / name
    (script,) = folder.glob("*.py")
    (trace,) = folder.glob("*.gz")
    return Profile(read_trace(trace)), script.name, tuple(script.read_text().splitlines())


@cache
def true_lines(name: str) -> dict[int, int]:
    """By operator the line in the source as it was recorded."""
    profile, file, lines = sample(name)
    return {row: place.line for row, place in placed(profile, file, lines).items() if not place.ties}


def placed(profile: Profile, file: str, lines: Sequence[str]) -> dict[int, Frame]:
    aligner = Aligner(profile, lambda asked: lines if asked == file else None)
    places = {row: aligner.place_of(row) for row in range(profile.tree.size) if profile.calls.outermost[row]}
    return {row: place for row, place in places.items() if place is not None and place.precision == "aligned"}


def inserted(lines: list[str], chance: random.Random) -> None:
    """A comment or two, anywhere."""
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(lines))
        indent = len(lines[at]) - len(lines[at].lstrip())
        lines.insert(at, " " * indent + "# a note")


def inserted_call(lines: list[str], chance: random.Random) -> None:
    at = chance.randrange(len(lines))
    indent = len(lines[at]) - len(lines[at].lstrip())
    lines.insert(at, " " * indent + "print(x.sum())")


def deleted(lines: list[str], chance: random.Random) -> None:
    del lines[chance.randrange(len(lines))]


def swapped(lines: list[str], chance: random.Random) -> None:
    """Two neighbours, which are of the same block for the most part."""
    at = chance.randrange(len(lines) - 1)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]


def doubled(lines: list[str], chance: random.Random) -> None:
    at = chance.randrange(len(lines))
    lines.insert(at, lines[at])


def functions_swapped(lines: list[str], chance: random.Random) -> None:
    """Two functions of a module, or two methods of a class."""
    nodes = [node for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.FunctionDef)]
    pairs = [(a, b) for a in nodes for b in nodes if (a.end_lineno or 0) < b.lineno and a.col_offset == b.col_offset]
    if pairs:
        first, second = chance.choice(pairs)
        (a, b), (c, d) = (first.lineno - 1, first.end_lineno), (second.lineno - 1, second.end_lineno)
        lines[:] = [*lines[:a], *lines[c:d], *lines[b:c], *lines[a:b], *lines[d:]]


EDITS: list[Callable[[list[str], random.Random], None]] = [
    inserted, inserted_call, deleted, swapped, doubled, functions_swapped,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_an_edited_source_gives_the_right_line_or_none(edit: Callable[[list[str], random.Random], None]) -> None:
    given_lines = wrong = 0
    for name in ("image_classifier_tidy", "text_generation_eval"):
        profile, file, lines = sample(name)
        truth = true_lines(name)
        for seed in range(8):
            edited = list(lines)
            edit(edited, random.Random(seed))
            answers = {row: place.line for row, place in placed(profile, file, edited).items() if not place.ties}
            given_lines += len(answers)
            wrong += sum(
                edited[line - 1].strip() != lines[truth[row] - 1].strip()
                for row, line in answers.items()
                if row in truth
            )
    assert given_lines > 0
    assert wrong <= WRONG_LIMIT * given_lines


# Sources that nobody foresaw


def functions_of(source: str) -> list[ast.AST]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, (*FRAMES, *DEFINITIONS))]


@cache
def written() -> tuple[tuple[ast.AST, ...], tuple[Observation, ...]]:
    """Every function of our programs, and observations of every name in them."""
    functions = [each for path in sorted(HARD.glob("*.py")) for each in functions_of(path.read_text())]
    names = sorted(
        {name for each in functions for site in automaton_of(each).sites for name in site.names | site.operators}
    )
    return tuple(functions), tuple(
        Observation(kind, name) for name in names for kind in ("operator", "built_in", "python")
    )


@given(st.data(), st.booleans())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_sequence_through_any_function_has_a_reading(data: st.DataObject, is_open: bool) -> None:
    functions, vocabulary = written()
    paths = Paths(automaton_of(data.draw(st.sampled_from(functions))))
    seen = data.draw(st.lists(st.sampled_from(vocabulary), max_size=30))
    if paths.can_explain(seen):
        reading = paths.explained(seen, data.draw(st.integers(0, 200)), is_open=is_open, tie=0.15)
        assert len(reading.choices) == len(seen)
        assert reading.cost >= 0
        assert all(choice.site is None or choice.site.line in choice.ties for choice in reading.choices)


@given(st.sampled_from(sorted(HARD.glob("*.py"))), st.integers(0, 10_000), st.integers(1, 8))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_no_mangled_source_breaks_it(path: Path, seed: int, times: int) -> None:
    lines, chance = path.read_text().splitlines(), random.Random(seed)
    for _ in range(times):
        chance.choice([inserted_call, deleted, swapped, doubled])(lines, chance)
    source = "\n".join(["def step():", *(f"    {line}" for line in lines)])
    profile = draw("train.py(1): step  0-900\n  aten::relu  10-50\n  aten::add  60-90")
    place = Aligner(profile, lambda _: source.splitlines()).place_of(row_of(profile, "aten::add"))
    assert place is not None
    assert place.line <= len(lines) + 1


def nested(depth: int) -> str:
    """A `finally` in a `finally`, each of which every exit before it must run."""
    lines = [f"{' ' * at}try:\n{' ' * at} return x.relu()\n{' ' * at}finally:" for at in range(1, depth)]
    return "def step(x):\n" + "\n".join(lines) + "\n" + " " * depth + "x.relu()\n"


HUGE = {
    "many statements": "def step(x):\n" + "    x = x.relu()\n" * (MOST_SITES + 1),
    "many clean-ups": nested(60),
    "long sum": "def step(x):\n    return " + " + ".join(["x"] * 5000),
    "deep brackets": "def step(x):\n    return " + "(" * 150 + "x.relu()" + ")" * 150,
    "chain of names": "def step(a0):\n" + "".join(f"    a{n + 1} = a{n}\n" for n in range(3000)) + "    a0.relu()\n",
    "data": "def step(x):\n    return x.relu(), [" + "1, " * 100_000 + "]",
}


@pytest.mark.parametrize("source", HUGE.values(), ids=HUGE)
def test_huge_functions_are_answered_or_declined(source: str) -> None:
    profile = draw(
        "train.py(1): step  0-900\n  <built-in method relu of Tensor object at 0x1>  10-50\n    aten::relu  20-40"
    )
    place = Aligner(profile, lambda _: source.splitlines()).place_of(row_of(profile, "aten::relu"))
    assert place is not None
    assert place.precision in {"aligned", "definition"}


def test_a_function_with_too_many_nodes_is_none() -> None:
    with pytest.raises(TooLargeError):
        automaton_of(ast.parse(HUGE["many statements"]).body[0])


def test_a_frame_with_too_many_children_is_declined() -> None:
    paths = Paths(automaton_of(ast.parse("def step(x):\n    for _ in x:\n        x = x + 1").body[0]))
    children = [Observation("operator", "add")]
    assert paths.can_explain(children * MOST_OBSERVATIONS)
    assert not paths.can_explain(children * (MOST_OBSERVATIONS + 1))


def test_the_costs_of_a_large_frame_fit_into_memory() -> None:
    paths = Paths(automaton_of(ast.parse("def step(x):\n" + "    x = x.relu()\n" * (MOST_SITES // 3)).body[0]))
    assert not paths.can_explain([Observation("operator", "add")] * MOST_OBSERVATIONS)


NEWER = {
    "type statement": ((3, 12), "def step(x):\n    type Pair = tuple[int, int]\n    return x.relu()\n"),
    "quotes in an f-string": ((3, 12), "def step(x):\n    f'{x['a']}'\n    return x.relu()\n"),
    "type parameters": ((3, 12), "def step[T](x: T) -> T:\n    pass\n    return x.relu()\n"),
    "except without brackets": ((3, 14), "def step(x):\n    try: pass\n    except A, B: pass\n    return x.relu()\n"),
    "group of exceptions": ((3, 11), "def step(x):\n    try: x.relu()\n    except* ValueError: pass\n    return x\n"),
}


@pytest.mark.parametrize(("since", "source"), NEWER.values(), ids=NEWER)
def test_syntax_of_a_newer_python_is_declined_by_an_older_one(since: tuple[int, int], source: str) -> None:
    profile = draw(
        "train.py(1): step  0-900\n  <built-in method relu of Tensor object at 0x1>  10-50\n    aten::relu  20-40"
    )
    place = Aligner(profile, lambda _: source.splitlines()).place_of(row_of(profile, "aten::relu"))
    assert place is not None
    assert place.precision == ("aligned" if sys.version_info >= since else "definition")


def test_warnings_about_the_users_source_are_not_ours_to_tell() -> None:
    source = "def step(x):\n    '\\d'\n    return x.relu()\n"
    profile = draw(
        "train.py(1): step  0-900\n  <built-in method relu of Tensor object at 0x1>  10-50\n    aten::relu  20-40"
    )
    place = Aligner(profile, lambda _: source.splitlines()).place_of(row_of(profile, "aten::relu"))
    assert place is not None
    assert (place.line, place.precision) == (3, "aligned")


COMPREHENDED = """\
def step(x):
    parts = [
        row * 2
        for row in x
        if row.sum() > 0
    ]
    return torch.stack(parts)
"""

IN_LINE = """
train.py(1): step                                      0-900
  torch/_tensor.py(1): __iter__                        10-40
    aten::unbind                                       20-30
  <built-in method sum of Tensor object at 0x2>        50-70
    aten::sum                                          55-65
  aten::gt                                             80-90
  aten::is_nonzero                                     92-98
  aten::mul                                            100-120
  <built-in method sum of Tensor object at 0x3>        150-170
    aten::sum                                          155-165
  aten::gt                                             180-190
  aten::is_nonzero                                     192-198
  aten::mul                                            200-220
  <built-in method stack of type object at 0x1>        300-400
    aten::stack                                        310-390
"""


@pytest.mark.parametrize(
    ("name", "nth", "line"), [("aten::sum", 1, 5), ("aten::gt", 0, 5), ("aten::mul", 1, 3), ("aten::stack", 0, 7)]
)
def test_comprehensions_in_line_as_from_python_3_12_on(name: str, nth: int, line: int) -> None:
    profile = draw(IN_LINE)
    place = Aligner(profile, lambda _: COMPREHENDED.splitlines()).place_of(row_of(profile, name, nth))
    assert place is not None
    assert (place.line, place.precision, place.ties) == (line, "aligned", ())


def test_a_long_sum_takes_time_in_proportion_to_its_terms() -> None:
    """Found by fuzzing: 400 terms took 10 s, since each sign asked again about all before it."""

    def took_s(terms: int) -> float:
        function = ast.parse("def f(a):\n    return " + " + ".join(["a"] * terms))
        sums = [node for node in ast.walk(function) if isinstance(node, ast.BinOp)]
        scalars = Scalars(function.body[0])
        gc.disable()  # it would take longer than the sum
        try:
            began = time.process_time()
            assert not any(map(scalars.is_plain, sums))
            return time.process_time() - began
        finally:
            gc.enable()

    tick_s = 0.01  # of clocks that count ticks
    assert min(took_s(400) for _ in range(10)) < 20 * min(took_s(100) for _ in range(10)) + tick_s
