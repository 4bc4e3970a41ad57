"""Reading a user's module: positions, hostile texts."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.fixes.change import Splice, Unfixable, collide, spliced
from tb_tidy_plugin.fixes.code import Code


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(:\n", "cannot be parsed as Python"),
        ("x = 1\0\n", "cannot be parsed as Python"),
        ("x = " + "(" * 100_000, "cannot be parsed as Python|nested too deeply"),
        ("x = 1" + "+1" * 20_000, "nested too deeply"),
        ("x = " + "-" * 20_000 + "1", "nested too deeply"),
        ("x = [" + "1, " * 60_000 + "]", "too large"),
    ],
    ids=["syntax", "zero byte", "parentheses", "sum", "signs", "data"],
)
def test_a_hostile_text_is_refused_in_words(text: str, reason: str) -> None:
    with pytest.raises(Unfixable, match=reason):
        Code(text)


@pytest.mark.parametrize("text", ["", "x = 1", "# é\r\nx = f(a,\r\n\tb)\r\n", "s = f'{f(1)}'\n"])
def test_positions_are_those_of_the_text(text: str) -> None:
    code = Code(text)
    assert [code.source(call) for call in code.calls] == [each for each in ("f(a,\r\n\tb)", "f(1)") if each in text]


def test_a_method_of_a_result_has_no_imported_name() -> None:
    code = Code("import torch\ntorch.zeros(2).mul_(3)\n")
    assert [code.qualified(call.func) for call in code.calls] == ["", "torch.zeros"]


def test_a_call_in_parentheses_keeps_them() -> None:
    code = Code("x = (f(1))\n")
    with pytest.raises(Unfixable, match="parentheses"):
        code.with_arguments(code.calls[0], {"a": "2"})


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("f()", "f(a=1, b=2)"),
        ("f(x)", "f(x, a=1, b=2)"),
        ("f(x, )", "f(x, a=1, b=2, )"),
        ("f(x, b=None)", "f(x, b=2, a=1)"),
        ("f(\n    x  # one\n)", "f(\n    x,  # one\n    a=1,\n    b=2\n)"),
        ("f(\n    x,\n    y,\n)", "f(\n    x,\n    y,\n    a=1,\n    b=2,\n)"),
        ("f(x,\n  y)", "f(x,\n  y, a=1, b=2)"),
        ("f((x\n  ))", "f((x\n  ), a=1, b=2)"),
        ("f(lambda: 0)", "f(lambda: 0, a=1, b=2)"),
    ],
)
def test_arguments_come_behind_the_others(call: str, expected: str) -> None:
    code = Code(f"{call}\n")
    given = code.with_arguments(code.calls[0], {"a": "1", "b": "2"}, instead_of="None")
    assert spliced(code.text, given) == f"{expected}\n"


@pytest.mark.parametrize(
    ("call", "expected"),
    [("f(k=0)", "f()"), ("f(x, k=0)", "f(x)"), ("f(k=0, x=1)", "f(x=1)"), ("f(x, k=0, )", "f(x, )")],
)
def test_an_argument_goes_with_its_comma(call: str, expected: str) -> None:
    code = Code(call)
    arg = code.argument(code.calls[0], "k")
    assert arg is not None
    assert spliced(call, code.without_argument(code.calls[0], arg)) == expected


def test_a_statement_with_a_text_of_several_lines_is_not_indented() -> None:
    code = Code('x = f("""a\nb""")\n')
    with pytest.raises(Unfixable, match="multi-line string"):
        code.wrapped(code.statements_on([1])[0], "with a:")


def test_splices_that_touch_the_same_characters_collide() -> None:
    assert collide([Splice(0, 3, ""), Splice(2, 4, "")])
    assert collide([Splice(1, 1, "a"), Splice(1, 1, "b")])
    assert collide([Splice(1, 1, "a\n"), Splice(1, 2, "")])
    assert not collide([Splice(0, 3, ""), Splice(3, 3, "a")])


def test_lines_at_the_same_offset_fit() -> None:
    lines = [Splice(2, 2, "b\n"), Splice(2, 2, "c\n")]
    assert not collide(lines)
    assert spliced("a\nd\n", lines) == "a\nb\nc\nd\n"
