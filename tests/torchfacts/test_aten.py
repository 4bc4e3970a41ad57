"""The table of what PyTorch's operators do: against torch itself, and against each list of operators in the package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner

from tb_tidy_plugin.dev import operator_table
from tb_tidy_plugin.dev.__main__ import dev
from tb_tidy_plugin.dev.generate import END, START
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.torchfacts.aten_table import TORCH
from tests.support.recordings import ROOT
from tests.support.views import SOMETIMES, VIEWS

PACKAGE = ROOT / "tb_tidy_plugin"


class TestAnswers:
    @pytest.mark.parametrize("name", ["aten::select", "aten::select.int"])
    def test_a_view_with_or_without_overload(self, name: str) -> None:
        assert aten.operator(name).kinds == {"known", "view", "shares"}
        assert aten.is_a("view", name)

    def test_an_operator_in_place_writes_to_its_first_input(self) -> None:
        written = aten.operator("aten::add_")
        assert [written.may_write(at) for at in range(4)] == [True, False, False, False]

    def test_an_operator_may_write_to_tensors_that_are_given_for_its_result(self) -> None:
        # aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out)
        assert [aten.operator("aten::add").may_write(at) for at in range(4)] == [False, False, False, True]
        assert not aten.is_a("in_place", "aten::add")

    def test_a_fused_optimizer_writes_to_all_its_states(self) -> None:
        assert aten.operator("aten::_fused_adamw_").written == frozenset({0, 1, 2, 3, 4})

    def test_batch_norm_writes_to_running_statistics_though_its_schema_is_silent(self) -> None:
        assert aten.operator("aten::batch_norm").written == frozenset({3, 4})

    @pytest.mark.parametrize(
        "name", ["mylib::scale", "aten::from_a_newer_torch", "Torch-Compiled Region: 0/0", "", "add_"]
    )
    def test_of_an_operator_that_is_not_in_the_table_the_worst_is_assumed(self, name: str) -> None:
        unknown = aten.operator(name)
        assert unknown.may_write(0)
        assert unknown.may_write(17)
        assert unknown.may_share(3)
        assert aten.is_a("shares", name)
        assert not any(aten.is_a(kind, name) for kind in get_args(aten.Trait) if kind != "shares")

    def test_of_two_tensors_max_is_pointwise_but_the_name_may_mean_a_reduction(self) -> None:
        assert aten.is_a("reduction", "aten::max")
        assert not aten.is_a("pointwise", "aten::max")
        assert aten.is_a("pointwise", "aten::maximum")

    def test_where_returns_a_list_only_without_values(self) -> None:
        assert not aten.is_a("list", "aten::where")
        assert aten.is_a("list", "aten::split")

    def test_names(self) -> None:
        assert aten.names("view", "select slice") == {"aten::select", "aten::slice"}
        assert aten.by_name("product", {"mm": 0}) == {"aten::mm": 0}
        assert aten.without_overload("aten::add.Tensor") == "aten::add"
        assert aten.without_overload("train.py(3): step") == "train.py(3): step"
        assert aten.without_writing("aten::add_") == "aten::add"
        assert aten.without_writing("aten::__and__") == "aten::__and__"
        assert aten.without_writing("mine_") == "mine_"
        assert aten.short_name("aten::add_") == "add_"


def tensors() -> dict[str, Any]:
    import torch

    m = torch.arange(1536.0).view(32, 48)
    return {"torch": torch, "F": torch.nn.functional, "m": m, "x": torch.rand(32, 48)}


@pytest.mark.torch
class TestTorch:
    def test_the_table_is_that_of_the_installed_torch_unless_that_is_older(self) -> None:
        if operator_table.installed_version() == TORCH:
            assert (ROOT / operator_table.TABLE).read_text("utf-8") == operator_table.table_text()
        else:
            assert f"older than {TORCH}" in operator_table.left_out()

    def test_the_table_has_each_operator_of_the_installed_torch_and_denies_nothing_that_it_says(self) -> None:
        assert operator_table.table_complaints() == []

    def test_the_torch_that_records_here_is_not_newer_than_the_table(self) -> None:
        version = [tuple(map(int, text.split("."))) for text in (operator_table.installed_version(), TORCH)]
        assert version[0] <= version[1], "run `make generate` with it, and state the release in docs/install.md"

    def test_operators_that_only_older_releases_have_are_kept(self) -> None:
        gone = operator_table.REMOVED.keys()
        assert gone <= {aten.short_name(name) for name in aten.all_of("known")}
        if operator_table.installed_version() == TORCH:
            assert gone.isdisjoint(operator_table.installed_facts())
        else:
            facts = operator_table.installed_facts()
            assert {name: facts[name] for name in gone if name in facts} == operator_table.REMOVED

    @pytest.mark.parametrize(("name", "expression"), {**VIEWS, **SOMETIMES}.items(), ids=[*VIEWS, *SOMETIMES])
    def test_a_result_shares_memory(self, name: str, expression: str) -> None:
        known = tensors()
        result = eval(expression, known)
        assert result.untyped_storage().data_ptr() == known["m"].untyped_storage().data_ptr()
        assert aten.is_a("shares", f"aten::{name}")
        assert aten.is_a("view", f"aten::{name}") is (name in VIEWS)

    def test_each_view_that_people_take_has_an_example(self) -> None:
        rare = r"aten::(?:\w*nested\w*|_test_\w+|_fw_primal|_make_dual|_unpack_dual|slice_inverse)"
        sparse = r"aten::(?:\w*indices|_?values|_sparse_\w+)"
        others = {name for name in aten.all_of("view") if not re.fullmatch(f"{rare}|{sparse}", name)}
        assert {aten.short_name(name) for name in others} == VIEWS.keys()

    @pytest.mark.parametrize(
        "expression",
        [
            "m.t().contiguous()", "m.t().reshape(-1)", "m.t().flatten()", "m.t().ravel()", "m.to(torch.float64)",
            "m.t().reshape_as(m.view(-1))", "torch.view_as_complex(m.view(32, 24, 2)).conj().resolve_conj()",
        ],
    )  # fmt: skip
    def test_what_makes_a_view_where_it_can_copies_elsewhere(self, expression: str) -> None:
        known = tensors()
        result = eval(expression, known)
        assert result.untyped_storage().data_ptr() != known["m"].untyped_storage().data_ptr()

    @pytest.mark.parametrize(
        "call",
        [
            "torch.batch_norm(x, None, None, mean, deviation, True, 0.1, 1e-5, False)",
            "torch.native_batch_norm(x, None, None, mean, deviation, True, 0.1, 1e-5)",
            "torch.ops.aten._batch_norm_impl_index(x, None, None, mean, deviation, True, 0.1, 1e-5, False)",
            "torch.instance_norm(x[None], None, None, mean[:32], deviation[:32], True, 0.1, 1e-5, False)",
            "torch.batch_norm_update_stats(x, mean, deviation, 0.1)",
        ],
    )
    def test_normalisation_writes_to_running_statistics(self, call: str) -> None:
        import torch

        known = {**tensors(), "mean": torch.zeros(48), "deviation": torch.zeros(48)}
        eval(call, known)
        assert known["mean"].any()
        assert known["deviation"].any()
        name = re.split(r"[(.]", call.partition("(")[0])[-1]
        assert operator_table.RUNNING_STATISTICS[name]

    def test_names_that_correct_the_schema_are_operators(self) -> None:
        corrected = (
            operator_table.COPIES
            | operator_table.POINTWISE
            | operator_table.NOT_POINTWISE
            | operator_table.PRODUCTS
            | operator_table.READS_VALUES
        )
        named = {*operator_table.TAGGED_VIEWS, *operator_table.SHARES, *operator_table.RUNNING_STATISTICS, *corrected}
        assert named - {aten.short_name(name) for name in aten.all_of("known")} == set()

    def test_what_flop_counter_counts_are_products(self) -> None:
        from torch.utils.flop_counter import flop_registry

        counted = {str(entry).replace("aten.", "aten::") for entry in flop_registry if str(entry).startswith("aten.")}
        assert counted
        assert counted - aten.all_of("product") == set()

    def test_names_that_compute_the_same_are_pointwise_together(self) -> None:
        import torch

        x = torch.rand(5) + 1
        for name, other in (("divide", "div"), ("multiply", "mul"), ("subtract", "sub"), ("floor_divide", "fmod")):
            assert aten.is_a("pointwise", f"aten::{name}") is aten.is_a("pointwise", f"aten::{other}")
            assert getattr(torch, name)(x, x).shape == x.shape

    def test_another_torch_is_held_against_the_table(self, tmp_path: Path) -> None:
        agrees = (
            "- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n  tags: [core, pointwise]\n"
        )
        gone = "- func: rename(Tensor(a) self, Dimname[]? names) -> Tensor(a)\n"
        denied = "- func: relu(Tensor(a!) self) -> Tensor(a!)\n\n- func: abs(Tensor(a) self) -> Tensor(a)\n"
        path = tmp_path / "native_functions.yaml"
        path.write_text(agrees + gone)
        assert CliRunner().invoke(dev, ["check-operators", str(path)]).output == ""
        path.write_text(agrees + gone + denied)
        done = CliRunner().invoke(dev, ["check-operators", str(path)])
        assert done.exit_code == 1
        assert done.stdout.splitlines() == ["abs: shares view shares=0", "relu: in_place writes=0"]
        assert "says less of 2 of 4 operators" in done.stderr

    def test_what_an_older_torch_says_otherwise_is_listed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        facts = {"add": "pointwise", "abs": "view shares=0", "only_in_an_older_torch": ""}
        monkeypatch.setattr(operator_table, "installed_facts", lambda: facts)
        assert operator_table.table_complaints() == [
            "only_in_an_older_torch: not in the table",
            "abs: shares view shares=0",
        ]

    @pytest.mark.parametrize("arguments", [["generate"], ["generate", "--check"]])
    def test_generate_keeps_the_table_and_fails_where_an_older_torch_contradicts_it(
        self, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "README.md").write_text(f"{START}\n{END}\n")
        monkeypatch.setattr("torch.__version__", "2.9.1+cpu")
        monkeypatch.setattr(operator_table, "installed_facts", dict)
        CliRunner().invoke(dev, ["generate"], obj=tmp_path)
        agrees = CliRunner().invoke(dev, arguments, obj=tmp_path)
        assert (agrees.exit_code, agrees.stdout) == (0, "")
        assert f"since torch 2.9.1 is older than {TORCH}, whose operators it holds" in agrees.stderr
        monkeypatch.setattr(operator_table, "installed_facts", lambda: {"abs": "view shares=0"})
        denied = CliRunner().invoke(dev, arguments, obj=tmp_path)
        assert denied.exit_code == 1
        assert denied.stdout == f"wrong in {operator_table.TABLE}: abs: shares view shares=0\n"
        assert "must hold for older releases, too" in denied.stderr
        assert not (tmp_path / operator_table.TABLE).exists()

    def test_an_older_torch_does_not_write_the_table(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("torch.__version__", "2.9.1+cpu")
        assert operator_table.left_out() == f"torch 2.9.1 is older than {TORCH}, whose operators it holds"
        monkeypatch.setattr("torch.__version__", "2.100.0a0+git123")
        assert operator_table.left_out() == ""


FEWEST_PLAIN = 3  # names without `aten::` that make a list: two may be anything
OWN_TABLES = frozenset({"dev/operator_table.py", "sources/emissions.py"})
"""Held against torch by tests of their own: above, and in tests/sources/test_emissions.py."""

PATTERNS = {"torchfacts/aten.py": aten.OVERLOAD.pattern, "profile/work/training.py": r"^aten::_(?:foreach|fused)_"}
"""Regular expressions about all operators, or all of a family."""

CALLS = frozenset({"names", "by_name"})


@cache
def modules() -> Mapping[str, ast.Module]:
    """The modules of the package by their paths in it; without those for work on the package, and the table itself."""
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "aten_table.py"]
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8")) for path in paths}


def chosen(node: ast.AST) -> bool:
    """Whether the node is a call that chooses operators."""
    match node:
        case ast.Call(ast.Attribute(ast.Name("aten"), name)):
            return name in CALLS
        case _:
            return False


@cache
def choices() -> tuple[tuple[str, str, str], ...]:
    """Each operator that is chosen: the module, the kind that its list states, and its name."""
    return tuple(_choices())


def _choices() -> Iterator[tuple[str, str, str]]:
    for where, module in modules().items():
        for node in filter(chosen, ast.walk(module)):
            match node:
                case ast.Call(_, [ast.Constant(str(kind)), ast.Constant(str(plain))]):
                    yield from ((where, kind, name) for name in plain.split())
                case ast.Call(_, [ast.Constant(str(kind)), ast.Dict(keys)]):
                    yield from ((where, kind, str(key.value)) for key in keys if isinstance(key, ast.Constant))
                case _:
                    pytest.fail(
                        f"{where}:{getattr(node, 'lineno', 0)}: write the operators out, so that they can be checked"
                    )


def elsewhere() -> Iterator[tuple[str, ast.AST]]:
    """The nodes of each module but docstrings and what is inside of calls that choose operators."""
    for where, module in modules().items():
        waiting: list[ast.AST] = [module]
        while waiting:
            node = waiting.pop()
            if not chosen(node) and not isinstance(node, ast.Expr):
                yield where, node
                waiting += ast.iter_child_nodes(node)


def strings_in(node: ast.AST) -> list[str]:
    """The strings that a list, a set, the keys of a dictionary or the arguments of a call are; none of all else."""
    held: Sequence[ast.expr | None] = ()
    match node:
        case ast.Tuple(elements) | ast.List(elements) | ast.Set(elements) | ast.Call(_, elements):
            held = elements
        case ast.Dict(keys):
            held = keys
        case _:
            pass
    return [each.value for each in held if isinstance(each, ast.Constant) and isinstance(each.value, str)]


class TestLists:
    def test_there_are_choices_of_most_kinds(self) -> None:
        kinds = {kind for _, kind, _ in choices()}
        assert kinds >= {"known", "view", "shares", "in_place", "pointwise", "factory", "reduction", "product", "read"}
        assert kinds <= {*get_args(aten.Trait)}

    def test_each_chosen_operator_is_of_the_kind_that_its_list_states(self) -> None:
        kinds = {aten.short_name(name): aten.operator(name).kinds for name in aten.all_of("known")}
        assert [choice for choice in choices() if choice[1] not in kinds.get(choice[2], ())] == []

    def test_operators_are_listed_in_no_other_way(self) -> None:
        known = {aten.short_name(name) for name in aten.all_of("known")}
        lists = [(where, names) for where, node in elsewhere() if len(names := strings_in(node)) > 1]
        full = [(where, names) for where, names in lists if sum(name.startswith(aten.PREFIX) for name in names) > 1]
        plain = [(where, names) for where, names in lists if len(names) >= FEWEST_PLAIN and known.issuperset(names)]
        assert full == [], "choose them by `aten.names`"
        assert [entry for entry in plain if entry[0] not in OWN_TABLES] == [], "choose them by `aten.names`"

    def test_each_operator_that_is_named_alone_exists_and_no_expression_matches_several(self) -> None:
        texts = [(where, node.value) for where, node in elsewhere() if isinstance(node, ast.Constant)]
        named = [(where, text) for where, text in texts if isinstance(text, str) and aten.PREFIX in text]
        single = [(where, text) for where, text in named if re.fullmatch(r"aten::\w+", text)]
        assert len(single) > 10
        assert [entry for entry in single if not aten.is_a("known", entry[1])] == []
        others = [(where, text) for where, text in named if (where, text) not in single and text != aten.PREFIX]
        ours = [(where, text) for where, text in others if not where.startswith("dev/") and text != PATTERNS.get(where)]
        assert ours == [], "ask `aten.operator`, or choose by `aten.names`"
