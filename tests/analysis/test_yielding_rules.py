"""Each `yields_to` of the catalogue: both rules find the pattern, and one of them speaks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pytest

from tb_tidy_plugin.analysis.assemble import checked
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rules import all_rules
from tests.accuracy.corpus import CORPUS
from tests.support.answers import matches_of
from tests.support.drawn import A100, Gpu, draw

RULES = {rule.name(): rule for rule in all_rules()}
PAIRS = [(name, other) for name, rule in RULES.items() for other in rule.yields_to]
TIMES = re.compile(r"(?<=[ @=])(\d+)-(\d+)(?=[ :\n]|$)")
STEP_US = 10_000
LARGE, SCORES = "512x1024", "8x512x512"
MISH = ("abs", "neg", "exp", "log1p", "clamp", "tanh", "sigmoid", "mul")


def shifted(line: str, by: int) -> str:
    return TIMES.sub(lambda found: f"{int(found[1]) + by}-{int(found[2]) + by}", line)


def steps(lines: Iterable[str], count: int = 1, gpu: Gpu | None = None) -> Profile:
    """The same lines, whose times are those within a step, in each step."""
    step = [f"ProfilerStep#1 0-{STEP_US - 1}", f"  train.py(3): step 1-{STEP_US - 2}", *lines]
    return draw("\n".join(shifted(line, STEP_US * number) for number in range(count) for line in step), gpu)


def pointwise(start: int, size: str = LARGE, each: int = 10) -> list[str]:
    """Eight operators one after the other."""
    return [
        f"    aten::{name} {start + each * at}-{start + each * (at + 1) - 1} dims={size} types=float"
        for at, name in enumerate(MISH)
    ]


def pieces(gap: Iterable[str]) -> Profile:
    """Compiled code in two pieces, with what runs in between from 1000 to 3000 µs."""
    return steps(
        [
            "    TorchDynamo Cache Lookup 10-20",
            "    Torch-Compiled Region: 0/0 21-5000",
            "      model.py(5): forward 22-4999",
            "        Pregraph bytecode 23-25",
            "        CompiledFunction 33-900",
            *(f"    {line}" for line in gap),
            "        TorchDynamo Cache Lookup 3100-3110",
            "        Torch-Compiled Region: 1/0 3111-4900",
            "          model.py(8): torch_dynamo_resume_in_forward_at_8 3112-4899",
            "            Pregraph bytecode 3113-3115",
            "            CompiledFunction 3120-4800",
        ],
        count=2,
    )


def loop(body: Callable[[int], list[str]], count: int = 12) -> list[str]:
    """`for i in range(count)`: picks a piece, then runs `body` from so many µs on."""
    pick = "    aten::select {at}-{end} dims=64x16,-,- types=float,Scalar,Scalar scalars=,0,{index}"
    starts = range(100, 100 + 200 * count, 200)
    return [
        line for index, at in enumerate(starts) for line in (pick.format(at=at, end=at + 4, index=index), *body(at + 5))
    ]


def ones(at: int) -> list[str]:
    """A factory, and an operator that reads what it makes."""
    given = "dims=-,-,-,-,- types=ScalarList,-,-,-,Scalar scalars=[16x16],,,,False"
    return [
        f"    aten::ones {at}-{at + 8} {given}",
        f"      aten::fill_ {at + 4}-{at + 7} dims=16x16,- types=float,Scalar scalars=,1.",
        f"    aten::add {at + 10}-{at + 14} dims=16,16x16 types=float,float",
    ]


def attention(*between: str) -> list[str]:
    """Two products and the softmax between them, and a node of the backward pass."""
    return [
        "    aten::bmm 100-190 dims=8x512x64,8x64x512 types=float,float",
        *between,
        f"    aten::softmax 1000-1090 dims={SCORES},-,- types=float,Scalar,- scalars=,-1,",
        "    aten::bmm 1100-1190 dims=8x512x512,8x512x64 types=float,float",
        "    autograd::engine::evaluate_function: MulBackward0 2000-2090 seq=3 fwd=1",
    ]


def scaled() -> list[str]:
    """Eight operators that scale scores and add a bias, and the backward pass of one of them."""
    tensors = f"dims={SCORES},{SCORES} types=float,float"
    names = enumerate(("mul", "add") * 4)
    chain = [f"    aten::{name} {200 + 90 * at}-{285 + 90 * at} {tensors}" for at, name in names]
    chain[0] += " seq=3"
    return chain


def copied(shape: str, of: str, made: str) -> list[str]:
    """A tensor that is laid out anew, then scaled; `of` are its strides before, `made` those after."""
    return [
        f"    aten::clone 200-400 dims={shape},- strides={of},- types=float,Scalar scalars=,0",
        f"      aten::copy_ 210-398 dims={shape},{shape},- strides={made},{of},- types=float,float,Scalar",
        f"    aten::mul 410-500 dims={shape},- types=float,double",
    ]


COPIED_SCORES = copied(SCORES, "262144x1x512", "262144x512x1")
MERGED_HEADS = copied("8x512x64", "32768x1x512", "32768x64x1")


def checked_node(at: int) -> list[str]:
    """A node of the backward pass, the check of its result for NaN, and a device that idles after it."""
    return [
        f"    autograd::engine::evaluate_function: MulBackward0 {at}-{at + 450}",
        f"      MulBackward0 {at + 1}-{at + 15} kernel=mul@{at + 10}-{at + 300}",
        f"      aten::isnan {at + 20}-{at + 30}",
        f"      aten::_is_any_true {at + 31}-{at + 40}",
        f"      aten::item {at + 50}-{at + 330} wait={at + 60}-{at + 320} copy=DtoH@{at + 302}-{at + 305}:1",
    ]


def reads(count: int) -> list[str]:
    """`for value in tensor: value.item()`."""
    pick = "    aten::select {at}-{end} dims=4096,-,- types=float,Scalar,Scalar scalars=,0,{index}"
    return [
        line
        for index in range(count)
        for at in [100 + 20 * index]
        for line in (pick.format(at=at, end=at + 5, index=index), f"    aten::item {at + 8}-{at + 15}")
    ]


DRAWN: dict[tuple[str, str], Callable[[], Profile]] = {
    ("constant-rebuilt-every-step", "python-loop-tensor-indexing"): lambda: steps(loop(ones), count=2),
    ("elementwise-op-flood", "unfused-attention"): lambda: steps(attention(*scaled())),
    ("elementwise-op-flood", "python-loop-tensor-indexing"): lambda: steps(
        loop(lambda at: pointwise(at, size="16", each=4), count=40)
    ),
    ("elementwise-op-flood", "decoder-pieces-written-out"): lambda: steps(gated(), gpu=A100),
    ("fp32-on-ordinary-cores", "fp32-matmul-no-tf32"): lambda: steps(
        ["    aten::mm 10-60 dims=4096x4096,4096x4096 types=float,float kernel=ampere_sgemm_128x64@100-9900"], gpu=A100
    ),
    ("hidden-contiguous-copy", "unfused-attention"): lambda: steps(attention(*COPIED_SCORES)),
    ("host-sync-scalar-readback", "anomaly-mode-enabled"): lambda: steps(
        [line for at in (100, 600, 1100) for line in checked_node(at)], gpu=A100
    ),
    ("host-work-holds-device", "python-loop-tensor-indexing"): lambda: with_kernel(
        loop(lambda at: pointwise(at, size="16", each=24), count=39)
    ),
    ("host-work-holds-device", "tensor-created-on-cpu-then-moved"): lambda: draw(
        (CORPUS / "tensor-created-on-cpu-then-moved" / "slow.txt").read_text(encoding="utf-8")
    ),
    ("host-work-holds-device", "tensor-from-python-data"): lambda: with_kernel(converted(), count=2),
    ("pageable-h2d-copy", "tensor-created-on-cpu-then-moved"): lambda: draw(
        (CORPUS / "tensor-created-on-cpu-then-moved" / "slow.txt").read_text(encoding="utf-8")
    ),
    ("python-loop-tensor-indexing", "host-sync-scalar-readback"): lambda: steps(reads(100)),
}


def with_kernel(lines: Iterable[str], count: int = 1) -> Profile:
    """Host work, and then the step's only product on a device."""
    return steps([*lines, "    aten::mm 8010-8090 kernel=h16816gemm@8100-9900"], count, A100)


def converted() -> list[str]:
    """A tensor made from a list."""
    return [
        "    <built-in method tensor of type object at 0x7f0> 100-7000",
        "      aten::empty 200-201",
        "      aten::to 6000-6001 dims=64x32,- types=float,Scalar",
        "      aten::lift_fresh 6002-6003 dims=64x32,- types=float,Scalar",
        "      aten::detach_ 6004-6005",
    ]


def gated() -> list[str]:
    """Six short operators and then a gate, each with its kernel."""
    names = [*MISH[:6], "silu"]
    lines = [f"    aten::{name} {10 * at}-{10 * at + 9} dims={LARGE} types=float" for at, name in enumerate(names, 1)]
    lines.append(f"    aten::mul 80-89 dims={LARGE},{LARGE} types=float,float")
    spans = [(100 + 100 * at, 200 + 100 * at) for at in range(6)] + [(700, 2000), (2000, 4000)]
    return [f"{line} kernel=k@{begin}-{end}" for line, (begin, end) in zip(lines, spans, strict=True)]


def alone(profile: Profile, *rules: str) -> set[str]:
    """Which of the rules find something, whatever the others find."""
    return {rule for rule in rules if matches_of(RULES[rule], profile)}


def together(profile: Profile, *rules: str) -> set[str]:
    """Which of the rules speak in a report."""
    _, reported = checked(profile, [RULES[rule]() for rule in rules])
    return {evidence.finding.rule for evidence in reported}


def test_each_is_drawn() -> None:
    assert set(DRAWN) == set(PAIRS)


@pytest.mark.parametrize(("rule", "other"), PAIRS)
def test_both_find_it_and_the_one_yielded_to_speaks(rule: str, other: str) -> None:
    profile = DRAWN[rule, other]()
    assert alone(profile, rule, other) == {rule, other}
    assert together(profile, rule, other) == {other}
    assert together(profile, rule) == {rule}


@pytest.mark.parametrize(
    "gap",
    [
        ones(1000),
        [shifted(line, 900) for line in MERGED_HEADS],
        [shifted(line, 900) for line in reads(100)],
        pointwise(1000),
    ],
    ids=["constants", "copy", "reads", "chain"],
)
def test_what_runs_between_pieces_of_compiled_code_is_of_one_rule(gap: list[str]) -> None:
    rules = (
        "constant-rebuilt-every-step",
        "elementwise-op-flood",
        "hidden-contiguous-copy",
        "host-sync-scalar-readback",
        "python-loop-tensor-indexing",
        "torch-compile-graph-break",
    )
    assert alone(pieces(gap), *rules) == {"torch-compile-graph-break"}


def test_a_copy_that_merges_heads_behind_the_attention_stays() -> None:
    merge = [shifted(line, 1000) for line in MERGED_HEADS]
    profile = steps([*attention(*scaled()), *merge])
    both = {"hidden-contiguous-copy", "unfused-attention"}
    assert alone(profile, *both) == together(profile, *both) == both
