"""Each `yields_to` of the catalogue: both rules find the pattern, and one of them speaks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pytest

from tb_tidy_plugin.analysis.assemble import checked
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, MI300, Gpu, draw, matches_of
from tb_tidy_plugin.rules import all_rules
from tests.accuracy.corpus import CORPUS

RULES = {rule.name(): rule for rule in all_rules()}
PAIRS = [(name, other) for name, rule in RULES.items() for other in rule.yields_to]
TIMES = re.compile(r"(?<=[ @=])(\d+)-(\d+)(?=[ :\n]|$)")
STEP_US = 10_000
LARGE, SCORES = "512x1024", "8x512x512"
FAR, SIBLING, CHAIN = "kernels-far-from-limit", "product-slower-than-sibling", "kernel-chain-at-launch-floor"
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
    """A tensor that is copied into another layout, then scaled; `of` are its strides before, `made` those after."""
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


def slow(rule: str) -> Profile:
    """The drawn program of the corpus."""
    return draw((CORPUS / rule / "slow.txt").read_text(encoding="utf-8"))


def on_device(lines: Iterable[str]) -> Profile:
    """Each operator with a kernel of 1.1 ms, one after the other."""
    spans = ((start, start + 1100) for start in range(200, STEP_US, 1100))
    return steps(
        [f"{line} kernel=elementwise_kernel@{start}-{end}" for line, (start, end) in zip(lines, spans, strict=False)],
        gpu=A100,
    )


def updates() -> Profile:
    """SGD with weight decay and momentum of twelve parameters, one at a time: each kernel takes 200 µs for 12 MB."""
    calls = ["mul_", "add_", "add_"] * 12
    return steps(
        [
            "    Optimizer.step#SGD.step 90-600",
            *(
                f"      aten::{name} {100 + 10 * at}-{105 + 10 * at} dims=1024x1024,1024x1024 types=float,float"
                f" kernel=elementwise_kernel@{700 + 200 * at}-{900 + 200 * at}"
                for at, name in enumerate(calls)
            ),
        ],
        gpu=A100,
    )


def attention_on_device(last: int) -> Profile:
    """Attention in half precision, whose last product takes `last` µs."""
    return steps(
        [
            "    aten::bmm 100-110 dims=8x512x64,8x64x512 types=half,half kernel=gemm_a@200-260",
            f"    aten::mul 120-130 dims={SCORES},- types=half,double kernel=elementwise@260-660",
            f"    aten::softmax 140-150 dims={SCORES},-,- types=half,Scalar,- scalars=,-1, kernel=softmax@660-1060",
            f"    aten::bmm 160-170 dims=8x512x512,8x512x64 types=half,half kernel=gemm_b@1060-{1060 + last}",
        ],
        gpu=A100,
    )


def layers(*body: str, took: int = 4) -> Profile:
    """Eight layers: a product of 100 µs, and then operators with kernels of `took` µs, or 20 µs for products."""
    lines, host, at = ["    nn.Module: Block_0 2-9000"], 3, 3000
    for call in ("mm dims=1024x1024,1024x1024 types=half,half", *body) * 8:
        name, _, given = call.partition(" ")
        end = at + {"mm": 100, "bmm": 20}.get(name, took)
        lines.append(f"      aten::{name} {host}-{host + 3} {given} kernel={name}@{at}-{end}")
        host, at = host + 4, end
    return steps(lines, gpu=A100)


NORM = (
    "to dims=4x512x64 types=bfloat16",
    "pow dims=4x512x64, types=float,Scalar",
    "mean dims=4x512x64 types=float",
    "add dims=4x512x1, types=float,Scalar",
    "rsqrt dims=4x512x1 types=float",
    "mul dims=4x512x64,4x512x1 types=float,float",
    "to dims=4x512x64 types=float",
    "mul dims=64,4x512x64 types=bfloat16,bfloat16",
)
SMALL_ATTENTION = (
    "bmm dims=8x128x64,8x64x128 types=half,half",
    "mul dims=8x128x128,- types=half,double",
    "add dims=8x128x128,8x128x128 types=half,half",
    "softmax dims=8x128x128,-,- types=half,Scalar,- scalars=,-1,",
    "bmm dims=8x128x128,8x128x64 types=half,half",
)
SGEMM = ["    aten::mm 10-60 dims=2048x4096,4096x4096 types=float,float kernel=ampere_sgemm_128x64@100-9900"]
CONVERTED = (
    "    aten::cudnn_convolution 10-90 dims=8x64x56x56,64x64x3x3,,,,,,,"
    " types=half,half,ScalarList,ScalarList,ScalarList,Scalar,Scalar,Scalar,Scalar"
    " scalars=,,[1x1],[1x1],[1x1],1,False,False,True"
    " kernel=cudnn::ops::nchwToNhwcKernel@100-3600 kernel=sm80_xmma_fprop_implicit_gemm_f16f16_nhwckrsc_nhwc@3600-4600"
    " kernel=cudnn::ops::nhwcToNchwKernel@4600-8100"
)
CAST = [
    "    aten::to 100-190 dims=4096x4096 types=bfloat16",
    "      aten::_to_copy 105-185 dims=4096x4096 types=bfloat16",
    "        aten::copy_ 110-180 dims=4096x4096,4096x4096 types=float,bfloat16 kernel=copy@1000-4000",
    "    aten::to 900-990 dims=4096x4096 types=float",
    "      aten::_to_copy 905-985 dims=4096x4096 types=float",
    "        aten::copy_ 910-980 dims=4096x4096,4096x4096 types=bfloat16,float kernel=copy@4000-7000",
]
HEADS_ON_DEVICE = [f"{line} kernel=copy@500-4500" if "copy_" in line else line for line in MERGED_HEADS]


def products(large: str, *spans: tuple[int, int], gpu: Gpu = A100, small: str = "") -> Profile:
    """The same product in each span but the last, and a faster one there."""
    dims = [small or large] * (len(spans) - 1) + [large]
    return steps(
        [
            f"    aten::mm {20 * at}-{20 * at + 9} dims={size} types=half,half kernel=gemm_{size}@{start}-{end}"
            for at, (size, (start, end)) in enumerate(zip(dims, spans, strict=True), 1)
        ],
        gpu=gpu,
    )


DRAWN: dict[tuple[str, str], Callable[[], Profile]] = {
    (FAR, "fp32-matmul-no-tf32"): lambda: steps(SGEMM, gpu=A100),
    (FAR, "fp32-on-ordinary-cores"): lambda: steps(SGEMM, gpu=A100),
    (FAR, "tensor-core-shape-misaligned"): lambda: slow("tensor-core-shape-misaligned"),
    (FAR, "unfused-attention"): lambda: attention_on_device(last=3000),
    (FAR, "decoder-pieces-written-out"): lambda: slow("decoder-pieces-written-out"),
    (FAR, "elementwise-op-flood"): lambda: on_device(pointwise(100)),
    (FAR, "convolution-layout-converted"): lambda: steps([CONVERTED], gpu=A100),
    (FAR, "hidden-contiguous-copy"): lambda: steps(HEADS_ON_DEVICE, gpu=A100),
    (FAR, "dtype-ping-pong"): lambda: steps(CAST, gpu=A100),
    (FAR, "optimizer-single-tensor"): updates,
    (FAR, SIBLING): lambda: products(
        "4096x4096,4096x8192", (100, 2100), (2100, 4100), (4100, 5200), small="4096x4096,4096x4096"
    ),
    (FAR, "small-batch-product-below-bandwidth"): lambda: products(
        "32x8192,8192x65536", (100, 900), (900, 1700), gpu=MI300
    ),
    (SIBLING, "tensor-core-shape-misaligned"): lambda: slow("tensor-core-shape-misaligned"),
    (SIBLING, "small-batch-product-below-bandwidth"): lambda: products(
        "32x8192,8192x65536", (100, 800), (800, 1500), (1500, 1800), gpu=MI300, small="32x8192,8192x32768"
    ),
    (SIBLING, "unfused-attention"): lambda: attention_on_device(last=400),
    (CHAIN, "decoder-pieces-written-out"): lambda: layers(*NORM),
    (CHAIN, "elementwise-op-flood"): lambda: layers(*(f"{name} dims={LARGE} types=float" for name in MISH)),
    (CHAIN, "unfused-attention"): lambda: layers(*SMALL_ATTENTION),
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
    ("host-work-holds-device", "tensor-created-on-cpu-then-moved"): lambda: slow("tensor-created-on-cpu-then-moved"),
    ("host-work-holds-device", "tensor-from-python-data"): lambda: with_kernel(converted(), count=2),
    ("pageable-h2d-copy", "tensor-created-on-cpu-then-moved"): lambda: slow("tensor-created-on-cpu-then-moved"),
    ("python-loop-tensor-indexing", "host-sync-scalar-readback"): lambda: steps(reads(100)),
    ("scalar-tensors-in-loop", "python-loop-tensor-indexing"): lambda: steps(
        loop(lambda at: [f"    aten::mul {at + each}-{at + each + 9} dims=, types=float,float" for each in (0, 10)], 40)
    ),
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
