"""A step that does other work is neither faster nor slower."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from click.testing import CliRunner

from tb_tidy_plugin.cli.main import commands
from tests.support.written import event, kineto_text, write

Call: TypeAlias = tuple[str, Sequence[Sequence[int]]]
STEPS = 6


def layer(rows: int, width: int, to: int, *, bias: bool = True, trained: bool = True) -> list[Call]:
    """A linear layer's products: forward, of its input's gradient and of its weight's; and the gradients it keeps."""
    forward = (
        ("aten::addmm", [[to], [rows, width], [width, to]]) if bias else ("aten::mm", [[rows, width], [width, to]])
    )
    backward = [("aten::mm", [[rows, to], [to, width]]), ("aten::mm", [[to, rows], [rows, width]])]
    kept = [("torch::autograd::AccumulateGrad", [[to, width]])]
    return [forward, *backward, *kept] if trained else [forward]


def model(rows: int = 4, width: int = 64, layers: int = 3, passes: int = 1, **named: bool) -> list[Call]:
    """A first layer, equal ones, and a head of 10 classes."""
    once = layer(rows, 32, width, **named)
    once += [call for _ in range(layers) for call in layer(rows, width, width, **named)]
    return (once + layer(rows, width, 10, **named)) * passes


def images(count: int = 4, size: int = 16, channels: int = 8) -> list[Call]:
    image, weight = [count, 3, size, size], [channels, 3, 3, 3]
    return [
        ("aten::convolution", [image, weight, [channels], [], [], [], [], []]),
        ("torch::autograd::AccumulateGrad", [weight]),
    ]


def recorded(folder: Path, calls: Sequence[Call], us: int, *, shapes: bool = True) -> Path:
    """Steps whose calls take `us` together."""
    events: list[dict[str, Any]] = []
    each = us / len(calls)
    at = 1000.0
    for step in range(STEPS):
        events.append(event(f"ProfilerStep#{step}", at, us + 20 + step, cat="user_annotation"))
        for number, (name, sizes) in enumerate(calls):
            args: dict[str, object] = {"External id": step * len(calls) + number}
            if shapes:
                concrete = ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]"][: len(sizes)]
                types = ["float" if size else "ScalarList" for size in sizes]
                args |= {
                    "Input Dims": sizes,
                    "Input type": types,
                    "Concrete Inputs": concrete if len(sizes) > 3 else [""] * len(sizes),
                }
            events.append(event(name, at + 5 + number * each, each * 0.9, args=args))
        at += us + 25 + step
    folder.mkdir()
    write(folder / "w.7.pt.trace.json", kineto_text(events))
    return folder


def compared(
    tmp_path: Path, base: Sequence[Call], candidate: Sequence[Call], us: tuple[int, int] = (1000, 2000)
) -> Any:  # noqa: ANN401
    sides = [
        recorded(tmp_path / name, calls, took) for name, calls, took in zip("ab", (base, candidate), us, strict=True)
    ]
    result = CliRunner().invoke(commands, ["compare", *map(str, sides), "--format", "json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


OTHER_WORK: list[tuple[str, Callable[[], list[Call]], Callable[[], list[Call]], str, float | None]] = [
    ("a larger batch", model, lambda: model(rows=32), "rows", 8.0),
    ("a larger batch in inference", lambda: model(trained=False), lambda: model(rows=32, trained=False), "rows", 8.0),
    ("gradients accumulated four times", model, lambda: model(passes=4), "passes", 4.0),
    ("a wider model", model, lambda: model(width=128), "model", None),
    ("a wider model of two layers", lambda: model(layers=0), lambda: model(layers=0, width=128), "model", None),
    ("more equal layers", model, lambda: model(layers=9), "model", None),
    ("layers of another kind", lambda: model(layers=0), model, "model", None),
    ("more images", images, lambda: images(count=32), "rows", 8.0),
    ("larger images", images, lambda: images(size=64), "inputs", None),
    ("training against inference", model, lambda: model(trained=False), "model", None),
    (
        "images against a linear model",
        lambda: [*images(), *model(layers=0)],
        lambda: model(rows=64, width=96),
        "model",
        None,
    ),
]


@pytest.mark.parametrize("turned", [False, True], ids=["more", "less"])
@pytest.mark.parametrize(
    ("what", "base", "candidate", "kind", "units"), OTHER_WORK, ids=[each[0] for each in OTHER_WORK]
)
def test_other_work_is_not_slower_or_faster(
    tmp_path: Path,
    what: str,
    base: Callable[[], list[Call]],
    candidate: Callable[[], list[Call]],
    kind: str,
    units: float | None,
    turned: bool,
) -> None:
    sides = (candidate(), base()) if turned else (base(), candidate())
    answer = compared(tmp_path, *sides, us=(8000, 1000) if turned else (1000, 8000))
    assert answer["verdict"] == "different_work", what
    assert answer["work"]["kind"] == kind
    assert answer["realised_ns"] is None
    if units is None:
        assert answer["work"]["time_per_unit"] is None
    else:
        expected = 1 / units if turned else units
        assert answer["work"]["units"] == pytest.approx(expected)
        assert answer["work"]["time_per_unit"]["value"] == pytest.approx(answer["step_ratio"]["value"] / expected)


def recomputed() -> list[Call]:
    """Checkpointing runs each forward product twice."""
    return [each for call in model(rows=64) for each in ([call, call] if call[0] == "aten::addmm" else [call])]


def row_by_row() -> list[Call]:
    """One product for each row, which a fix joins."""
    return [call for _ in range(32) for call in model(rows=1, trained=False)]


SAME_WORK: list[tuple[str, Callable[[], list[Call]], Callable[[], list[Call]]]] = [
    ("the same", model, model),
    ("a fix that runs no forward pass twice", recomputed, lambda: model(rows=64)),
    ("a fix that joins rows", row_by_row, lambda: model(rows=32, trained=False)),
    (
        "a fix that scores the last position only",
        lambda: [*model(rows=256, trained=False), ("aten::mm", [[256, 64], [64, 5000]])],
        lambda: [*model(rows=256, trained=False), ("aten::mm", [[8, 64], [64, 5000]])],
    ),
    (
        "a fix that drops a second backward pass",
        lambda: model(rows=64) + [call for call in model(rows=64) if call[0] == "aten::mm"],
        lambda: model(rows=64),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("what", "base", "candidate"), SAME_WORK, ids=[each[0] for each in SAME_WORK])
def test_a_fix_is_not_other_work(
    tmp_path: Path, what: str, base: Callable[[], list[Call]], candidate: Callable[[], list[Call]]
) -> None:
    answer = compared(tmp_path, base(), candidate(), us=(8000, 1000))
    assert answer["work"] is None, what
    assert answer["verdict"] in {"faster", "no_clear_difference"}, "the latter where equal work shows a busier machine"
    assert answer["realised_ns"] == 7_000_000


def test_batches_of_many_sizes_are_the_same_work(tmp_path: Path) -> None:
    """Texts padded to the longest of a batch: steps of one side differ more than the sides."""
    sides = []
    for name, rows in (("a", (10, 90, 30, 70, 50, 60)), ("b", (80, 20, 60, 60, 40, 90))):
        events: list[dict[str, Any]] = []
        for step, number in enumerate(rows):
            at = 1000 + step * 2000
            events.append(event(f"ProfilerStep#{step}", at, 1990, cat="user_annotation"))
            args = {"Input Dims": [[number, 64], [64, 64]], "Input type": ["float", "float"], "External id": step}
            events.append(event("aten::mm", at + 10, 1500 + number, args=args))
        (tmp_path / name).mkdir()
        write(tmp_path / name / "w.7.pt.trace.json", kineto_text(events))
        sides.append(tmp_path / name)
    result = CliRunner().invoke(commands, ["compare", *map(str, sides), "--format", "json"])
    assert json.loads(result.output)["work"] is None


def test_the_terminal_and_markdown_say_so_and_how_long_a_row_takes(tmp_path: Path) -> None:
    sides = [str(recorded(tmp_path / name, model(rows), us)) for name, rows, us in (("a", 4, 1000), ("b", 32, 7000))]
    for form in ("text", "markdown"):
        output = " ".join(CliRunner().invoke(commands, ["compare", *sides, "--format", form]).output.split())
        assert "Different work per step: step time ×6.8" in output
        assert "The work per step changed: the rows of products (samples or tokens) ×8" in output
        assert "Time per row ×0.855" in output
        assert "slower" not in output.lower()


def test_a_limit_counts_per_unit_of_work(tmp_path: Path) -> None:
    base = str(recorded(tmp_path / "a", model(rows=4), 1000))
    same, slower = (str(recorded(tmp_path / name, model(rows=32), us)) for name, us in (("b", 7000), ("c", 16_000)))
    limit = ["--fail-on", "regression:20%"]
    assert CliRunner().invoke(commands, ["compare", base, same, *limit]).exit_code == 0
    assert CliRunner().invoke(commands, ["compare", base, slower, *limit]).exit_code == 1


def test_a_limit_says_that_it_cannot_be_checked_without_a_unit(tmp_path: Path) -> None:
    sides = [
        str(recorded(tmp_path / name, model(width=width), us))
        for name, width, us in (("a", 64, 1000), ("b", 128, 9000))
    ]
    result = CliRunner().invoke(commands, ["compare", *sides, "--fail-on", "regression"])
    assert result.exit_code == 0
    assert "the work per step changed" in result.stderr


def test_without_shapes_a_verdict_says_that_the_work_is_unknown(tmp_path: Path) -> None:
    sides = [
        str(recorded(tmp_path / name, model(layers=number), us, shapes=False))
        for name, number, us in (("a", 1, 1000), ("b", 9, 8000))
    ]
    answer = json.loads(CliRunner().invoke(commands, ["compare", *sides, "--format", "json"]).output)
    assert answer["verdict"] == "slower"
    assert any("whether the work per step changed is unknown" in note for note in answer["notes"])
