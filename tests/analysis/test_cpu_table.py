"""CPU work as the report shows it, counted by hand."""

from __future__ import annotations

from tb_tidy_plugin.analysis.tables import figures_of
from tb_tidy_plugin.rulekit.testing import draw

STEP = """
train.py(10): step                    0-1000
  nn.Module: Net_0                    20-400
    net.py(5): forward                30-390
      aten::relu                      100-200
      torch/nn/linear.py(7): forward  210-300
  aten::relu                          500-600
  <built-in method sleep>             700-900
"""


def test_python_between_operators_by_function() -> None:
    """What has no file, a module and a built-in, is time of the function that calls it."""
    frames = figures_of(draw(STEP)).cpu.frames
    assert frames is not None
    assert [(row.file, row.line, row.function, row.own_code) for row in frames] == [
        ("train.py", 10, "step", True), ("net.py", 5, "forward", True), ("torch/nn/linear.py", 7, "forward", False),
    ]  # fmt: skip
    assert [(row.calls, row.self_ns) for row in frames] == [(1, 320_000 + 20_000 + 200_000), (1, 170_000), (1, 90_000)]


def test_time_in_generated_code_is_of_the_compiled_function() -> None:
    """With it that of kernels in C++, which have no events; not of the functions of torch between the two."""
    frames = figures_of(
        draw("""
        model.py(7): forward                                            0-1000
          torch/_inductor/utils.py(9): run                              100-900
            zj/czjnfejbdxv64ttdmw7oj5j4zjc6uf3iyojdsx47yei3jacna2c4.py(134): call  200-800
              <built-in method empty_strided>                           300-400
              aten::mm                                                  500-600
        """)
    ).cpu.frames
    assert frames is not None
    assert [(row.file, row.function, row.calls, row.self_ns) for row in frames] == [
        ("model.py", "forward", 1, 200_000 + 500_000), ("torch/_inductor/utils.py", "run", 1, 200_000),
    ]  # fmt: skip


def test_slow_calls_and_the_threads_beside_them() -> None:
    usual = [f"aten::mm {n * 100}-{n * 100 + 50} dims=4x4,4x4 types=float,float" for n in range(9)]
    slow = "aten::mm 2000-3000 dims=4x4,4x4 types=float,float"
    other = "aten::add 2100-2900 dims=4x4,4x4 types=float,float thread=2"
    cpu = figures_of(
        draw("\n".join(["ProfilerStep#7 0-5000"] + ["  " + line for line in [*usual, slow]] + [other]))
    ).cpu
    (call,) = cpu.slow_calls
    assert (call.operator, call.shapes, call.step, call.file, call.line) == (
        "aten::mm", "4×4, 4×4", "ProfilerStep#7", "", None,
    )  # fmt: skip
    assert (call.own_ns, call.median_ns, call.threads, call.contended) == (1_000_000, 50_000, 2, True)
    assert (cpu.threads, cpu.most_threads, cpu.frames) == (2, 2, None)
