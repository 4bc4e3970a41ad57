"""What statements are made from: data that comes back as it was, from which nothing but the rule makes Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

import msgspec
import pytest

from tb_tidy_plugin import aten
from tb_tidy_plugin.analysis.checker import Found, check_rule
from tb_tidy_plugin.analysis.pairs import made_again
from tb_tidy_plugin.benchmarks.statements import complaint_about
from tb_tidy_plugin.profile.optimizers import WITH_FOREACH
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit import TORCH_DTYPES, Benchmark, Bytes, Fact, Match, Nanoseconds, Rule, Share
from tb_tidy_plugin.rulekit.recipe import Recipe, recipe_of
from tb_tidy_plugin.rulekit.rule import SIZES, sizes_in
from tb_tidy_plugin.rulekit.statements import OF_ONE, OF_TWO, OTHERS
from tb_tidy_plugin.rulekit.testing import draw
from tb_tidy_plugin.rules import all_rules
from tb_tidy_plugin.rules.host_device.tensor_created_on_cpu_then_moved import MEASURED
from tb_tidy_plugin.rules.host_device.tensor_from_python_data import FILLS
from tb_tidy_plugin.rules.python_loops.cat_in_loop import CatInLoop
from tb_tidy_plugin.trace.kineto import read_trace
from tests.accuracy.corpus import programs
from tests.support.recordings import ROOT

Facts = Mapping[str, Fact]

DTYPES = sorted(set(TORCH_DTYPES.values()))
FLOATS = [dtype for dtype in DTYPES if "float" in dtype]
PRODUCT: Facts = {"batch": 2, "m": 33, "k": 16, "n": 8}


def attention(dtype: str, masked: str) -> Facts:
    return {"queries": 64, "keys": 96, "width": 32, "batch": 2, "dtype": dtype, "masked": masked}


def chain(names: str, dtype: str = "float32", **others: Fact) -> Facts:
    return {"chain": names, "dtype": dtype, "shape": "64×32", "count": 9, "gradients": 0, "on_device": 0, **others}


def convolution(dims: int, **options: Fact) -> Facts:
    sizes = "×3" * dims
    given = dict.fromkeys(("stride", "padding", "dilation"), "×".join("1" * dims)) | options
    return {"op": f"aten::conv{dims}d", "dtype": "float", "input": f"2×4{sizes}", "weight": f"8×2{sizes}", **given}


def optimizer(algorithm: str, device: str, setting: str) -> Facts:
    sizes = {"elements": 64, "parameters": 12, "each": 4}
    return {"algorithm": algorithm, "device": device, "setting": setting, **sizes}


WRITTEN: Mapping[str, list[Facts]] = {
    "cat-in-loop": [{"calls": 5, "dim": dim, "piece": "4×8"} for dim in (0, 1, -1)],
    "constant-rebuilt-every-step": [
        {"factory": factory, "sizes": "32×32", "elements": 1024, "further": further, "numbers": numbers}
        for factory in ("ones", "zeros")
        for further, numbers in (("", ""), ("triu to", "1×11"), ("tril triu", "-1×0"))
    ],
    "conv-bias-before-batchnorm": [*map(convolution, (1, 2, 3)), convolution(2, padding="")],
    "dataloader-num-workers-zero": [{"loading": Nanoseconds(5_000_000), "rest": Nanoseconds(2_000_000)}],
    "dtype-ping-pong": [
        {"shape": "64×512", "dtype": dtype, "other": other, "size": Bytes(65_536)}
        for dtype, other in product(FLOATS, FLOATS)
    ],
    "elementwise-op-flood": [
        chain(" ".join(sorted(OF_ONE | OF_TWO | set(OTHERS)))),
        *(chain("aten::mul aten::add", dtype, gradients=3, on_device=1) for dtype in FLOATS),
    ],
    "fp32-matmul-no-tf32": [PRODUCT],
    "grad-graph-never-consumed": [{"nodes": 20}],
    "hidden-contiguous-copy": [
        {"shape": "512×256", "strides": "1×512", "dtype": dtype, "needed": 0, "size": Bytes(524_288)}
        for dtype in DTYPES
    ],
    "host-sync-scalar-readback": [{"values": 64}],
    "optimizer-single-tensor": [
        optimizer(algorithm, *others)
        for algorithm, others in product(WITH_FOREACH, (("CPU", "fused=True"), ("GPU", "foreach=True")))
    ],
    "pageable-h2d-copy": [{"shape": "64×3", "dtype": dtype, "size": Bytes(768)} for dtype in DTYPES],
    "python-loop-tensor-indexing": [{"iterations": 16, "operators": 48, "elements": 32}],
    "tensor-core-shape-misaligned": [{**PRODUCT, "dtype": dtype} for dtype in ("float16", "bfloat16")],
    "tensor-created-on-cpu-then-moved": [
        {"factory": factory, "dtype": dtype, "shape": "64×3", "size": Bytes(768)}
        for factory, dtype in product(sorted(map(aten.plain, MEASURED)), DTYPES)
    ],
    "tensor-from-python-data": [
        {"dtype": dtype, "shape": "64×32", "holds": holds} for dtype, holds in product(FILLS, ("numbers", "arrays"))
    ],
    "unfused-attention": [attention(dtype, masked) for dtype, masked in product(FLOATS, ("yes", "no"))],
    "zero-grad-memset": [{"shapes": "2×8×4 1×8 1", "size": 288}],
}
"""Facts of each rule that makes statements, such that all of its tables get into some."""

RULES = {rule.name(): rule for rule in all_rules() if rule.benchmark is not Rule.benchmark}
every_rule = pytest.mark.parametrize("name", sorted(RULES))

PAYLOADS = (
    "boom",
    "torch.boom",
    "float32)\nboom()",
    "float32\nboom",
    "64×boom()",
    "2×8×4 1×boom()",
    "8, 4)\nboom()#",
    "fused=True)\nboom()#",
    "ones((1,))\nboom()#",
    "aten::boom",
    "aten::add\nboom()",
    "yes\nboom",
    "boom=(1, 1), ",
)


def recipe(name: str, facts: Facts) -> Recipe:
    """The recipe for these facts, as it comes back from where it was kept."""
    made = recipe_of(RULES[name](), facts)
    assert made is not None
    again = msgspec.json.decode(msgspec.json.encode(made), type=Recipe)
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


def test_there_are_facts_of_each_rule_that_makes_statements() -> None:
    assert set(WRITTEN) == set(RULES)


@every_rule
def test_all_statements_that_the_catalogue_can_make_may_be_run(name: str) -> None:
    for facts in WRITTEN[name]:
        pair = recipe(name, facts).pair(RULES[name])
        assert pair is not None, facts
        assert complaint_about(pair) is None, pair


def test_what_is_found_in_recordings_gives_the_same_statements_again_and_they_may_be_run() -> None:
    seen = set()
    for rule, match in recorded():
        pair = rule.benchmark(match)
        assert recipe(rule.name(), match.facts).pair(type(rule)) == pair
        assert pair is None or complaint_about(pair) is None
        seen |= {rule.name()} if pair else set()
    assert len(seen) > 9


def forged(name: str, facts: Facts, fact: str, payload: str) -> Benchmark | None:
    """What is made of a recipe in which one fact is a text of somebody else's."""
    given = msgspec.to_builtins(recipe(name, facts))
    given["facts"][fact] = ["text", payload]
    return made_again({"f": msgspec.convert(given, Recipe)}, [RULES[name]]).get("f")


@every_rule
def test_no_text_in_a_fact_gets_into_a_statement(name: str) -> None:
    """Whatever the fact is, and whichever type it had: the rule looks it up, or makes nothing of it."""
    for facts in WRITTEN[name]:
        for fact, payload in product(facts, PAYLOADS):
            pair = forged(name, facts, fact, payload)
            assert pair is None or "boom" not in pair.setup + pair.before + pair.after, (fact, payload)


@every_rule
def test_facts_that_are_not_the_rules_make_no_statements(name: str) -> None:
    nothing = Recipe(name, {}, {})
    assert made_again({"f": nothing}, [RULES[name]]) == {}


def test_a_rule_that_is_not_there_makes_no_statements() -> None:
    assert made_again({"f": Recipe("os", {}, {}), "g": Recipe("collective-straggler", {}, {})}, RULES.values()) == {}


def test_each_type_of_fact_comes_back() -> None:
    facts: Facts = {"a": Bytes(4096), "b": Nanoseconds(1000), "c": Share(0.5), "d": Share(1), "e": 7, "f": "x"}
    again = [(name, type(kept.fact), kept.fact) for name, kept in recipe("cat-in-loop", facts).facts.items()]
    assert again == [(name, type(fact), fact) for name, fact in facts.items()]


@pytest.mark.parametrize("fact", [1 << 63, -(1 << 63), "x" * 100_000], ids=["large", "small", "long"])
def test_what_is_beyond_all_measure_makes_no_statements(fact: Fact) -> None:
    assert recipe_of(CatInLoop(), {"calls": fact}) is None


def test_a_fact_of_another_type_is_the_rules_fault() -> None:
    with pytest.raises(TypeError, match="the fact `calls` is a `list`"):
        recipe_of(CatInLoop(), {"calls": [1]})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "change",
    [
        {"facts": {"a": ["bytes", "x"]}},
        {"facts": {"a": ["bytes", 1.5]}},
        {"facts": {"a": ["integer", True]}},
        {"facts": {"a": ["integer", 1 << 63]}},
        {"facts": {"a": ["share", "0.5"]}},
        {"facts": {"a": ["text", 1]}},
        {"facts": {"a": ["text", "x" * 100_000]}},
        {"facts": {"a": ["python", "1"]}},
        {"facts": {"a": ["text", "x", "y"]}},
        {"facts": {"a": "x"}},
        {"facts": {"a" * 101: ["text", "x"]}},
        {"facts": {f"a{at}": ["integer", at] for at in range(101)}},
        {"settings": {"min_share": "0"}},
        {"statements": {"before": "1", "after": "1", "setup": "1"}},
        {"rule": 1},
    ],
    ids=str,
)
def test_nothing_else_is_a_recipe(change: dict[str, object]) -> None:
    given = {"rule": "cat-in-loop", "settings": {}, "facts": {}}
    msgspec.convert(given, Recipe)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(given | change), type=Recipe)


def test_thresholds_come_along() -> None:
    class Limited(CatInLoop):
        def benchmark(self, match: Match) -> Benchmark:
            return Benchmark(f"{self.min_calls:g}", "", "")

    made = recipe_of(Limited({"min_calls": 7}), {"calls": 9})
    assert made is not None
    assert made.pair(Limited) == Benchmark("7", "", "")


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("64×3", (64, 3)), ("-1", (-1,)), ("", ()), ("64x3", ()), ("64×", ()), ("٤", ()), ("1" * 19, ()), ("64×3\n", ())],
)
def test_sizes_are_integers_and_nothing_besides(text: str, sizes: tuple[int, ...]) -> None:
    assert sizes_in(text) == sizes
    assert bool(SIZES.fullmatch(text)) == bool(sizes)


@pytest.mark.parametrize(("text", "dtype"), [("float32", "float32"), ("float", ""), ("hub", ""), ("", "")])
def test_dtypes_are_those_of_the_table(text: str, dtype: str) -> None:
    assert Match(anchor=0, events=(), facts={"dtype": text}).dtype("dtype") == dtype


def test_a_benchmark_is_given_facts_and_nothing_else_of_a_match() -> None:
    class Curious(CatInLoop):
        def benchmark(self, match: Match) -> Benchmark:
            assert replace(match, facts={}) == Match(anchor=-1, events=())
            return Benchmark("", "", "")

    made = recipe_of(Curious(), {"calls": 9})
    assert made is not None
    assert made.pair(Curious) is not None
