"""What lines cost: calls on their own line and on those that lead to it; device work; functions as a whole or not."""

from __future__ import annotations

from tb_tidy_plugin.analysis.lines import LineCosts, line_costs
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw
from tb_tidy_plugin.sources.align import Aligner

SOURCE = """\
import torch


def step(x, w):
    y = torch.relu(x)
    return scaled(y, w)


def scaled(y, w):
    return y * w
"""

DRAWN = """
train.py(4): step                                     0-900
  <built-in method relu of type object at 0x1>        10-50
    aten::relu                                        20-40   kernel=relu_kernel@60-300
  train.py(9): scaled                                 100-400
    aten::mul                                         150-350 kernel=mul_kernel@350-400
"""


def costs(profile: Profile, budget_s: float = 10.0) -> LineCosts:
    return line_costs(profile, Aligner(profile, lambda _: SOURCE.splitlines()), budget_s)


def test_a_call_counts_on_its_line_and_on_the_one_that_leads_to_it() -> None:
    found = costs(draw(DRAWN, A100))
    assert [(cost.line, cost.host_ns, cost.device_ns, cost.calls) for cost in found.lines] == [
        (5, 40_000, 240_000, 1),
        (6, 300_000, 50_000, 1),
        (10, 200_000, 50_000, 1),
    ]
    assert found.left_out == []


def test_kernels_of_one_call_count_the_time_that_they_cover_together() -> None:
    both = DRAWN.replace("kernel=relu_kernel@60-300", "kernel=relu_kernel@60-300  kernel=relu_tail@200-340")
    assert both != DRAWN
    [line, *_] = costs(draw(both, A100)).lines
    assert line.device_ns == 280_000


def test_functions_for_which_there_is_no_time_are_named_and_no_part_of_them_is_counted() -> None:
    found = costs(draw(DRAWN, A100), budget_s=-1.0)
    assert found.lines == []
    assert [frame.function for frame in found.left_out] == ["step", "scaled"]
