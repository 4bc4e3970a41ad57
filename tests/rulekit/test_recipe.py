"""What statements are made from: data that comes back as it was, from which nothing but the rule makes Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from types import UnionType
from typing import Any, get_origin, get_type_hints

import msgspec
import pytest

from tb_tidy_plugin.analysis.checker import Found, check_rule
from tb_tidy_plugin.analysis.pairs import made_again
from tb_tidy_plugin.benchmarks.statements import complaint_about
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.training import WITH_FOREACH
from tb_tidy_plugin.rulekit import (
    TORCH_DTYPES,
    Benchmark,
    Bytes,
    Match,
    Nanoseconds,
    Rule,
    Share,
    Sizes,
    known_dtype,
)
from tb_tidy_plugin.rulekit.recipe import pair_of, recipe_of
from tb_tidy_plugin.rulekit.statements import OF_ONE, OF_TWO, OTHERS
from tb_tidy_plugin.rulekit.testing import draw
from tb_tidy_plugin.rules import all_rules
from tb_tidy_plugin.rules.host_device.tensor_created_on_cpu_then_moved import MEASURED
from tb_tidy_plugin.rules.host_device.tensor_from_python_data import FILLS
from tb_tidy_plugin.rules.python_loops.cat_in_loop import CatInLoop, Evidence
from tb_tidy_plugin.system.decoders import convert, decode
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.words.recipe import Recipe
from tb_tidy_plugin.words.units import Count
from tests.accuracy.corpus import programs
from tests.support.recordings import ROOT

Facts = Mapping[str, Any]

DTYPES = sorted(set(TORCH_DTYPES.values()))
FLOATS = [dtype for dtype in DTYPES if "float" in dtype]
PRODUCT: Facts = {"batch": 2, "m": 33, "k": 16, "n": 8}


def attention(dtype: str, *, is_masked: bool) -> Facts:
    return {"queries": 64, "keys": 96, "width": 32, "batch": 2, "dtype": dtype, "is_masked": is_masked}


def chain(names: list[str], dtype: str = "float32", **others: object) -> Facts:
    return {"chain": tuple(names), "dtype": dtype, "shape": Sizes((64, 32)), **others}


def convolution(dims: int, **options: Sizes) -> Facts:
    given = dict.fromkeys(("stride", "padding", "dilation"), Sizes([1] * dims)) | options
    sizes = [3] * dims
    return {
        "op": f"aten::conv{dims}d",
        "dtype": "float",
        "input": Sizes((2, 4, *sizes)),
        "weight": Sizes((8, 2, *sizes)),
    } | given


def optimizer(algorithm: str, *, on_gpu: bool) -> Facts:
    return {"algorithm": algorithm, "on_gpu": on_gpu, "elements": 64, "parameters": 12, "each": 4}


WRITTEN: Mapping[str, list[Facts]] = {
    "cat-in-loop": [{"calls": 5, "dim": dim, "piece": Sizes((4, 8))} for dim in (0, 1, -1)],
    "constant-rebuilt-every-step": [
        {"names": (factory, *further), "sizes": Sizes((32, 32)), "elements": 1024, "numbers": Sizes(numbers)}
        for factory in ("ones", "zeros")
        for further, numbers in (((), ()), (("triu", "to"), (1, 11)), (("tril", "triu"), (-1, 0)))
    ],
    "conv-bias-before-batchnorm": [*map(convolution, (1, 2, 3)), convolution(2, padding=Sizes())],
    "dataloader-num-workers-zero": [{"loading": Nanoseconds(5_000_000), "rest": Nanoseconds(2_000_000)}],
    "dtype-ping-pong": [
        {"shape": Sizes((64, 512)), "dtype": dtype, "other": other, "size": Bytes(65_536)}
        for dtype, other in product(FLOATS, FLOATS)
    ],
    "full-vocabulary-sort": [{"requests": 2, "vocabulary": Count(32_768)}],
    "elementwise-op-flood": [
        chain(sorted(OF_ONE | OF_TWO | set(OTHERS))),
        *(chain(["aten::mul", "aten::add"], dtype, gradients=3, on_device=True) for dtype in FLOATS),
    ],
    "float32-beside-bfloat16-units": [{"size": 512}],
    "fp32-matmul-no-tf32": [PRODUCT],
    "grad-graph-never-consumed": [{"nodes": 20}],
    "hidden-contiguous-copy": [
        {"shape": Sizes((512, 256)), "strides": Sizes((1, 512)), "dtype": dtype, "size": Bytes(524_288)}
        for dtype in DTYPES
    ],
    "host-sync-scalar-readback": [{"values": 64}],
    "optimizer-single-tensor": [
        optimizer(algorithm, on_gpu=on_gpu) for algorithm, on_gpu in product(WITH_FOREACH, (False, True))
    ],
    "pageable-h2d-copy": [{"shape": Sizes((64, 3)), "dtype": dtype, "size": Bytes(768)} for dtype in DTYPES],
    "python-loop-tensor-indexing": [{"iterations": 16, "operators": 48, "elements": 32}],
    "recurrent-cell-in-loop": [
        {"fused": fused, "calls": 8, "inputs": Sizes((4, 16)), "units": 32} for fused in ("LSTM", "GRU", "RNN")
    ],
    "scalar-tensors-in-loop": [{"operators": 80}],
    "tensor-core-shape-misaligned": [{**PRODUCT, "dtype": dtype} for dtype in ("float16", "bfloat16")],
    "tensor-created-on-cpu-then-moved": [
        {"factory": factory, "dtype": dtype, "shape": Sizes((64, 3)), "size": Bytes(768)}
        for factory, dtype in product(sorted(map(aten.short_name, MEASURED)), DTYPES)
    ],
    "tensor-from-python-data": [
        {"dtype": dtype, "shape": Sizes((64, 32)), "holds_arrays": holds}
        for dtype, holds in product(FILLS, (False, True))
    ],
    "unfused-attention": [attention(dtype, is_masked=masked) for dtype, masked in product(FLOATS, (False, True))],
    "zero-grad-memset": [{"shapes": ((2, Sizes((8, 4))), (1, Sizes((8,))), (1, Sizes()))}],
}
"""What statements are made from, of each rule that makes some, such that all of its tables get into some."""

RULES = {rule.name(): rule for rule in all_rules() if rule.benchmark is not Rule.benchmark}
every_rule = pytest.mark.parametrize("name", sorted(RULES))

PAYLOADS = (
    "boom",
    "torch.boom",
    "float32)\nboom()",
    "float32\nboom",
    "64×boom()",
    "8, 4)\nboom()#",
    "fused=True)\nboom()#",
    "ones((1,))\nboom()#",
    "aten::boom",
    "aten::add\nboom()",
    "yes\nboom",
    "boom=(1, 1), ",
)


def evidence(name: str, facts: Facts) -> object:
    """Evidence of a rule: these facts, and nothing in all other fields."""
    kind = RULES[name].evidence()
    assert kind is not None
    hints = get_type_hints(kind)
    names = [field.name for field in msgspec.structs.fields(kind)]
    return kind(**{name: facts.get(name, _nothing(hints[name])) for name in names})


def _nothing(hint: Any) -> object:  # noqa: ANN401 - the type of any field
    return None if get_origin(hint) is UnionType else (get_origin(hint) or hint)()


def recipe(name: str, facts: Facts) -> Recipe:
    """The recipe for these facts, as it comes back from where it was kept."""
    return kept(RULES[name](), evidence(name, facts))


def kept(rule: Rule, given: object) -> Recipe:
    made = recipe_of(rule, given)
    assert made is not None
    again = decode(msgspec.json.encode(made), Recipe)
    assert again == made
    return again


def recorded() -> Iterator[tuple[Rule, Match]]:
    """What rules that make statements find in the sample runs, and in what is drawn of slow programs."""
    profiles = [Profile(read_trace(path)) for path in sorted(ROOT.glob("sample_runs/*/*.pt.trace.json.gz"))]
    slow = [each.path for each in programs() if each.is_drawn and each.kind == "slow"]
    profiles += [draw(path.read_text(encoding="utf-8")) for path in slow]
    for profile in profiles:
        for rule in (kind() for kind in RULES.values()):
            outcome = check_rule(profile, rule)
            if isinstance(outcome, Found):
                yield from ((rule, match) for match in outcome.matches)


def test_there_is_evidence_of_each_rule_that_makes_statements() -> None:
    assert set(WRITTEN) == set(RULES)


@every_rule
def test_all_statements_that_the_catalogue_can_make_may_be_run(name: str) -> None:
    for facts in WRITTEN[name]:
        pair = pair_of(recipe(name, facts), RULES[name])
        assert pair is not None, facts
        assert complaint_about(pair) is None, pair


def test_what_is_found_in_recordings_gives_the_same_statements_again_and_they_may_be_run() -> None:
    seen = set()
    for rule, match in recorded():
        pair = rule.benchmark(match.evidence)
        assert pair_of(kept(rule, match.evidence), type(rule)) == pair
        assert pair is None or complaint_about(pair) is None
        seen |= {rule.name()} if pair else set()
    assert len(seen) > 9


def forged(made: Recipe, fact: str, payload: object) -> Benchmark | None:
    """What is made of a recipe in which one fact is somebody else's."""
    given = msgspec.to_builtins(made)
    given["facts"][fact] = payload
    return made_again({"f": convert(given, Recipe)}, [RULES[made.rule]]).get("f")


def with_each_value(several: list[Facts]) -> Iterator[Facts]:
    """As few of these facts as hold each value of each fact."""
    seen: set[str] = set()
    for facts in several:
        values = set(map(str, facts.items()))
        if values - seen:
            yield facts
        seen |= values


@every_rule
def test_no_text_in_a_fact_gets_into_a_statement(name: str) -> None:
    """Whatever the fact is, and whichever type it had: the rule looks it up, or makes nothing of it."""
    for facts in with_each_value(WRITTEN[name]):
        made = recipe(name, facts)
        for fact, text in product(made.facts, PAYLOADS):
            for payload in (text, [text], [[2, text]]):
                pair = forged(made, fact, payload)
                assert pair is None or "boom" not in pair.setup + pair.before + pair.after, (fact, payload)


@every_rule
def test_facts_that_are_not_the_rules_make_no_statements(name: str) -> None:
    nothing = Recipe(name, {}, {})
    assert made_again({"f": nothing}, [RULES[name]]) == {}


def test_a_rule_that_is_not_there_makes_no_statements() -> None:
    assert made_again({"f": Recipe("os", {}, {}), "g": Recipe("collective-straggler", {}, {})}, RULES.values()) == {}


class OfAllTypes(msgspec.Struct, frozen=True):
    size: Bytes
    time: Nanoseconds
    share: Share
    whole: Share
    shape: Sizes
    number: int
    fraction: float
    switch: bool
    text: str
    texts: tuple[str, ...]
    shapes: tuple[tuple[int, Sizes], ...]
    known: Bytes | None
    unknown: Bytes | None


class Curious(Rule[OfAllTypes]):
    """Makes statements of what it is given."""

    __module__ = CatInLoop.__module__
    seen: OfAllTypes | None = None

    def detect(self, profile: Profile) -> Iterator[Match[OfAllTypes]]:
        raise NotImplementedError

    def benchmark(self, evidence: OfAllTypes) -> Benchmark:
        Curious.seen = evidence
        return Benchmark("", "", "")


def types_in(value: Any) -> object:  # noqa: ANN401 - any part of an evidence
    """The type of a value, and those of its parts."""
    return (type(value), *map(types_in, value)) if isinstance(value, tuple) else type(value)


def test_each_type_comes_back() -> None:
    given = OfAllTypes(
        Bytes(4096), Nanoseconds(1000), Share(0.5), Share(1), Sizes((64, 3)), 7, 0.5, True, "x", ("x", "y"),
        ((2, Sizes((8, 4))), (1, Sizes())), Bytes(1), None,
    )  # fmt: skip
    pair_of(kept(Curious(), given), Curious)
    assert Curious.seen == given
    for field in msgspec.structs.fields(given):
        assert types_in(getattr(Curious.seen, field.name)) == types_in(getattr(given, field.name)), field.name


@pytest.mark.parametrize("fact", [1 << 63, -(1 << 63), "x" * 100_000], ids=["large", "small", "long"])
def test_what_is_beyond_all_measure_makes_no_statements(fact: object) -> None:
    assert recipe_of(CatInLoop(), evidence("cat-in-loop", {"calls": fact})) is None


def test_a_field_of_another_type_is_the_rules_fault() -> None:
    with pytest.raises(TypeError, match="evidence holds a `Profile`"):
        recipe_of(CatInLoop(), evidence("cat-in-loop", {"calls": draw("aten::mm  0-10")}))


@pytest.mark.parametrize(
    "change",
    [
        {"facts": {"a": 1 << 63}},
        {"facts": {"a": "x" * 100_000}},
        {"facts": {"a": {"b": 1}}},
        {"facts": {"a": [True]}},
        {"facts": {"a": [[["x"]]]}},
        {"facts": {"a": [[[[1]]]]}},
        {"facts": {"a": [[1] * 101]}},
        {"facts": {"a": [1] * 5000}},
        {"facts": {"a" * 101: "x"}},
        {"facts": {f"a{at}": at for at in range(101)}},
        {"settings": {"min_share": "0"}},
        {"statements": {"before": "1", "after": "1", "setup": "1"}},
        {"rule": 1},
    ],
    ids=str,
)
def test_nothing_else_is_a_recipe(change: dict[str, object]) -> None:
    given = {"rule": "cat-in-loop", "settings": {}, "facts": {}}
    convert(given, Recipe)
    with pytest.raises(msgspec.ValidationError):
        decode(msgspec.json.encode(given | change), Recipe)


def test_thresholds_come_along() -> None:
    class Limited(CatInLoop):
        def benchmark(self, evidence: Evidence) -> Benchmark:
            return Benchmark(f"{self.min_calls:g}", "", "")

    made = kept(Limited({"min_calls": 7}), evidence("cat-in-loop", {"calls": 9}))
    assert pair_of(made, Limited) == Benchmark("7", "", "")


@pytest.mark.parametrize(("text", "dtype"), [("float32", "float32"), ("float", ""), ("hub", ""), ("", "")])
def test_dtypes_are_those_of_the_table(text: str, dtype: str) -> None:
    assert known_dtype(text) == dtype
