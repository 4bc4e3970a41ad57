"""What lines cost: calls on their own line and on those that lead to it; device work; functions as a whole or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from tb_tidy_plugin.analysis.assemble import Analysis, read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.lines import PASSES, LineCost, LineCosts, line_costs, summed_times
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.trace.files import find_traces
from tests.ledger.test_random import Event, hosts, made, works
from tests.support.recordings import ROOT, shared, shared_names

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


TRAINING = """\
import torch


def forward(x, w):
    y = torch.relu(x)
    return y * w


def update(p):
    p.add_(1)


def train(x, w):
    loss = forward(x, w)
    loss.backward()
    update(x)
"""

STEP = """
ProfilerStep#1                                          0-1000
  train.py(15): train                                   1-999
    train.py(4): forward                                10-400
      <built-in method relu of type object at 0x1>      20-200
        aten::relu                                      30-180  seq=7
      aten::mul                                         210-390  seq=8
    <built-in method backward of Tensor object at 0x2>  410-800
      MulBackward0                                      420-500  seq=8  fwd=1
      ReluBackward0                                     510-780  seq=7  fwd=1
        aten::threshold_backward                        520-770
    <built-in method step of SGD object at 0x3>         810-990
      Optimizer.step#SGD.step                           820-980
        aten::add_                                      830-970
"""


def step_costs(drawn: str, source: str = TRAINING) -> dict[int, LineCost]:
    """The costs by line, whose sums are the step's."""
    profile = draw(drawn)
    found = line_costs(profile, Aligner(profile, lambda _: source.splitlines()))
    check_sums(profile, found)
    return {cost.line: cost for cost in found.lines}


def check_sums(profile: Profile, found: LineCosts) -> None:
    """Lines, functions and the rest are the ledger's steps, in each pass, to the nanosecond."""
    step, ledger = found.step, account_of(profile).ledger
    parts = summed_times([*found.lines, *step.functions, step.elsewhere])
    assert [getattr(parts, name) for name in PASSES] == [getattr(step, name) for name in PASSES]
    assert step.own_ns == step.ns == sum(entry.ns_total for entry in ledger.entries)
    assert step.steps == max(len(ledger.steps), 1)
    assert all(0 <= line.own_ns <= line.total_ns <= step.ns for line in found.lines)


class TestStep:
    def test_the_backward_pass_counts_on_the_lines_of_its_forward_operators(self) -> None:
        source = TRAINING.replace("    update(x)\n", "    optimizer.step()\n")
        lines = step_costs(STEP, source)
        relu, product, call, backward, update = (lines[number] for number in (5, 6, 14, 15, 16))
        assert (relu.forward_ns, relu.backward_ns) == (150_000, 270_000)
        assert (product.forward_ns, product.backward_ns) == (180_000, 80_000)
        assert (backward.forward_ns, backward.backward_ns, backward.host_ns) == (0, 0, 390_000)
        assert (update.optimizer_ns, update.total_ns) == (140_000, update.own_ns)
        assert call.own_ns == 0
        assert call.total_ns > relu.own_ns + product.own_ns == 730_000 - 50_000 + relu.other_ns + product.other_ns

    def test_a_function_that_calls_itself_counts_once_on_each_line(self) -> None:
        source = "def walk(n):\n    return walk(n - 1) if n else torch.relu(n)\n\n\ndef train(n):\n    walk(n)\n"
        drawn = """
        ProfilerStep#1                  0-1000
          train.py(5): train            1-999
            train.py(1): walk           10-900
              train.py(1): walk         20-800
                train.py(1): walk       30-700
                  <built-in method relu of type object at 0x1>  40-600
                    aten::relu          50-500
        """
        lines = step_costs(drawn, source)
        assert lines[2].forward_ns == 450_000
        assert lines[2].total_ns == 780_000
        assert lines[6].total_ns == 890_000

    def test_what_is_computed_again_counts_on_its_line_and_on_that_of_the_checkpoint(self) -> None:
        source = "def block(x):\n    return torch.relu(x)\n\n\ndef train(x):\n    y = checkpoint(block, x)\n"
        source += "    y.backward()\n"
        drawn = """
        ProfilerStep#1                                          0-1000
          train.py(5): train                                    1-999
            torch/utils/checkpoint.py(300): checkpoint          10-300
              CheckpointFunction                                20-290  seq=3
                train.py(1): block                              30-280
                  <built-in method relu of type object at 0x1>  40-270
                    aten::relu                                  50-250
            <built-in method backward of Tensor object at 0x2>  400-990
              CheckpointFunctionBackward                        410-980  seq=3  fwd=1
                train.py(1): block                              420-900
                  <built-in method relu of type object at 0x1>  430-800
                    aten::relu                                  440-700
        """
        lines = step_costs(drawn, source)
        assert (lines[2].forward_ns, lines[2].backward_ns) == (200_000, 260_000)
        assert lines[6].total_ns > 460_000 > lines[7].total_ns

    def test_a_line_that_a_function_had_when_recording_began_gets_no_time(self) -> None:
        """Its source does not fit; without it, too, the time stands on the function."""
        profile = draw("ProfilerStep#1  0-900\n  train.py(62): train  0-900\n    aten::mul  100-800")
        for source in (TRAINING.splitlines(), None):
            found = line_costs(profile, Aligner(profile, {"train.py": source}.get))
            check_sums(profile, found)
            assert not any(line.own_ns for line in found.lines)
            [function] = found.step.functions
            assert (function.file, function.function, function.forward_ns) == ("train.py", "train", 700_000)

    def test_functions_for_which_there_is_no_time_keep_theirs_without_a_line(self) -> None:
        profile = draw(STEP)
        found = line_costs(profile, Aligner(profile, lambda _: TRAINING.splitlines()), budget_s=-1.0)
        check_sums(profile, found)
        assert found.lines == []
        assert {each.function for each in found.step.functions} == {"train", "forward"}

    def test_work_of_a_device_counts_on_the_line_that_launched_it(self) -> None:
        drawn = """
        ProfilerStep#1                                          0-1000
          train.py(4): step                                     1-999
            <built-in method relu of type object at 0x1>        10-50
              aten::relu                                        20-40   kernel=relu_kernel@60-600
            train.py(9): scaled                                 100-400
              aten::mul                                         150-350 kernel=mul_kernel@610-700
        """
        profile = draw(drawn, A100)
        found = line_costs(profile, Aligner(profile, lambda _: SOURCE.splitlines()))
        check_sums(profile, found)
        relu, call, product = found.lines
        assert [each.line for each in found.lines] == [5, 6, 10]
        assert 540_000 <= relu.forward_ns < 600_000
        assert 90_000 <= product.forward_ns < 110_000
        assert (call.own_ns, call.total_ns) == (0, product.own_ns)


@pytest.fixture(scope="module", params=sorted(each.parent.name for each in ROOT.glob("sample_runs/*/*.gz")))
def sample(request: pytest.FixtureRequest) -> Analysis:
    folder: Path = ROOT / "sample_runs" / request.param
    [trace] = find_traces(folder)
    return read_file(trace, Job(source_roots=(folder,)))


def test_lines_of_sample_runs_add_up_to_the_ledgers_steps(sample: Analysis) -> None:
    found = line_costs(sample.profile, sample.aligner)
    check_sums(sample.profile, found)
    assert sum(line.own_ns for line in found.lines) > 0.8 * found.step.ns


@pytest.mark.sampled
@pytest.mark.parametrize("name", shared_names("traces"))
def test_time_of_real_recordings_adds_up_though_their_sources_are_absent(name: str) -> None:
    for trace in find_traces(shared(f"traces/{name}"))[:1]:
        analysis = read_file(trace, Job())
        check_sums(analysis.profile, line_costs(analysis.profile, analysis.aligner))


@given(hosts, works)
@settings(max_examples=20)
def test_time_of_random_events_adds_up(hosts_: list[Event], works_: list[Event]) -> None:
    profile = made(hosts_, works_).profile()
    check_sums(profile, line_costs(profile, Aligner(profile, {"train.py": TRAINING.splitlines()}.get)))


def test_an_owner_of_a_sample_runs_ledger_has_at_most_the_time_of_its_line(sample: Analysis) -> None:
    """Both name the same lines, and a line has all of the pass that its owners have."""
    found = {(cost.file, cost.line): cost for cost in line_costs(sample.profile, sample.aligner).lines}
    owned: dict[tuple[str, int, str], int] = {}
    for entry in sample.report.ledger.entries:
        for owner in entry.owners:
            if owner.exact and owner.file and owner.line and owner.pass_ and not owner.file.startswith("torch"):
                key = (owner.file, owner.line, owner.pass_)
                owned[key] = owned.get(key, 0) + owner.ns
    assert len(owned) > 5
    for (file, line, pass_), ns in owned.items():
        assert ns <= getattr(found[file, line], f"{pass_}_ns"), (file, line, pass_)


def test_a_call_has_one_line(sample: Analysis) -> None:
    """As seen from its function, and from itself."""
    aligner, places = sample.aligner, sample.aligner.places
    rows = sorted(set(places.row.tolist()) - {-1})
    judged = 0
    for row in rows[:: max(len(rows) // 300, 1)]:
        frame = places.of(row)
        assert frame is not None
        for call, place in aligner.calls_in(row, frame) if frame.own_code else ():
            of_call = aligner.place_of(call)
            if int(places.row[call]) == row:
                assert of_call is not None
                assert (of_call.file, of_call.line, of_call.ties) == (place.file, place.line, place.ties)
                judged += 1
    assert judged > 20
