"""tensor-from-python-data: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Benchmark, Match, Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, reason_not_checked, saving_ns
from tb_tidy_plugin.rules.host_device.tensor_from_python_data import TensorFromPythonData

SHAPED = "dims=64x32,- types=float,Scalar"


def step(
    at: int,
    call: str = "<built-in method tensor of type object at 0x7f0>",
    allocated: int = 10,
    converted: int = 400,
    shaped: str = SHAPED,
) -> str:
    """A step of 1 ms whose batch is made in 500 µs: its memory and its data are there after so many µs."""
    return f"""
        ProfilerStep#{at}                 {at}000-{at}990
          train.py(9): step               {at}001-{at}980
            train.py(4): batch            {at}050-{at}700
              {call}                      {at}100-{at}600
                aten::empty               {at}{100 + allocated}-{at}{101 + allocated}
                aten::to                  {at}{100 + converted}-{at}{101 + converted}  {shaped}
                aten::lift_fresh          {at}{102 + converted}-{at}{103 + converted}  {shaped}
                aten::detach_             {at}{104 + converted}-{at}{105 + converted}
            aten::mm                      {at}710-{at}970"""


def two_steps(**changes: int | str) -> str:
    return step(1, **changes) + step(2, **changes)  # type: ignore[arg-type]


CONSTRUCTOR = "".join(
    f"""
        ProfilerStep#{at}      {at}000-{at}990
          train.py(9): step    {at}001-{at}980
            aten::empty        {at}100-{at}101
            aten::to           {at}400-{at}401  dims=2000,-  types=long,Scalar
            aten::lift_fresh   {at}402-{at}403  dims=2000    types=long"""
    for at in (1, 2)
)


def matches(profile: Profile, **settings: float) -> tuple[Match, ...]:
    return matches_of(TensorFromPythonData(settings), profile)


class TestReports:
    def test_a_tensor_made_from_a_list(self) -> None:
        (finding,) = findings(TensorFromPythonData, draw(two_steps()))
        assert finding.message == (
            "`torch.tensor` makes a tensor of 64×32 float32 values from Python objects, element by element: 400 µs"
        )
        assert (finding.places[0].function, finding.matches, finding.cost_ns) == ("batch", 2, 400_000)

    @pytest.mark.parametrize(
        ("call", "function"),
        [
            ("<built-in method as_tensor of type object at 0x7f0>", "torch.as_tensor"),
            ("<built-in method asarray of type object at 0x7f0>", "torch.asarray"),
            ("<built-in method new_tensor of Tensor object at 0x7f1>", "torch.new_tensor"),
        ],
    )
    def test_other_functions_that_take_lists(self, call: str, function: str) -> None:
        assert {match.evidence.function for match in matches(draw(two_steps(call=call)))} == {function}

    def test_a_constructor_which_is_recorded_by_its_operators_alone(self) -> None:
        profile = draw(CONSTRUCTOR)
        (finding,) = findings(TensorFromPythonData, profile)
        assert finding.message.startswith("`torch.LongTensor` makes a tensor of 2000 int64 values")
        assert finding.cost_ns == 300_000

    def test_without_shapes_by_the_time_alone(self) -> None:
        (finding,) = findings(TensorFromPythonData, draw(two_steps(shaped="")))
        assert finding.message == "`torch.tensor` makes a tensor from Python objects, element by element: 400 µs"

    def test_what_a_library_makes_at_medium_confidence(self) -> None:
        collate = "torch/utils/data/_utils/collate.py(120): collate"
        found = matches(draw(two_steps().replace("train.py(4): batch", collate)))
        assert [match.confidence for match in found] == ["medium", "medium"]
        assert {match.confidence for match in matches(draw(two_steps()))} == {"high"}

    def test_in_a_single_step(self) -> None:
        assert len(matches(draw(step(1)))) == 1

    def test_without_steps_what_is_made_twice(self) -> None:
        text = two_steps().replace("ProfilerStep#", "service.py(1): handle")
        text = text.replace("handle1", "handle").replace("handle2", "handle")
        assert len(matches(draw(text))) == 2


class TestSaves:
    def test_most_of_the_time_for_arrays(self) -> None:
        # 400 µs until the data is there, of which 10 µs pass before memory is allocated: 5 % stay, at least nothing.
        assert saving_ns(TensorFromPythonData, draw(two_steps())) == (0, 380_000, 400_000)

    def test_less_for_numbers_which_are_looked_at_twice(self) -> None:
        # 100 of the 400 µs pass before memory is allocated: 13 % stay, at least nothing.
        assert saving_ns(TensorFromPythonData, draw(two_steps(allocated=100))) == (0, 348_000, 400_000)

    def test_only_what_no_device_hides(self) -> None:
        # The device works for the first 200 of 400 µs in the first step, and for none in the second.
        text = two_steps().replace(
            "train.py(4): batch            1050-1700", "train.py(4): batch 1050-1700 kernel=gemm@1060-1300"
        )
        (finding,) = findings(TensorFromPythonData, draw(text, A100))
        assert finding.cost_ns == 300_000

    def test_nothing_of_the_copy_to_the_device(self) -> None:
        text = two_steps().replace("aten::to                  1500-1501", "aten::to 1500-1501 copy=HtoD@1501-1590:8192")
        (finding,) = findings(TensorFromPythonData, draw(text, A100))
        assert finding.cost_ns == 400_000

    def test_a_benchmark_of_arrays(self) -> None:
        match = matches(draw(two_steps()))[0]
        assert TensorFromPythonData().benchmark(match.evidence) == Benchmark(
            before="result = torch.tensor(data, dtype=torch.float32)",
            after="result = torch.from_numpy(numpy.stack(data))",
            setup="import numpy\nimport torch\ndata = list(torch.rand((64, 32), dtype=torch.float32).numpy())",
            devices=("cpu",),
            of_events=True,
        )

    def test_a_benchmark_of_numbers(self) -> None:
        match = matches(draw(CONSTRUCTOR))[0]
        assert TensorFromPythonData().benchmark(match.evidence) == Benchmark(
            before="result = torch.tensor(data, dtype=torch.int64)",
            after="result = torch.from_numpy(numpy.asarray(data, dtype=numpy.int64))",
            setup="import numpy\nimport torch\ndata = torch.ones((2000,), dtype=torch.int64).numpy().tolist()",
            devices=("cpu",),
            of_events=True,
        )

    @pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy")  # which is what the rule is about
    @pytest.mark.parametrize("text", [two_steps(), two_steps(allocated=100), CONSTRUCTOR])
    def test_both_sides_of_a_benchmark_make_the_same(self, text: str) -> None:
        torch = pytest.importorskip("torch")
        benchmark = TensorFromPythonData().benchmark(matches(draw(text))[0].evidence)
        assert benchmark is not None
        names: dict[str, object] = {}
        exec(f"{benchmark.setup}\n{benchmark.before}\nbefore = result\n{benchmark.after}", names)
        assert torch.equal(names["before"], names["result"])

    def test_no_benchmark_without_shapes_or_of_other_dtypes(self) -> None:
        for shaped in ("", "dims=64x32 types=bool"):
            match = matches(draw(two_steps(shaped=shaped)))[0]
            assert TensorFromPythonData().benchmark(match.evidence) is None


class TestStaysQuiet:
    def test_below_a_tenth_of_a_millisecond(self) -> None:
        assert matches(draw(two_steps(converted=100)))
        assert not matches(draw(two_steps(converted=99)))
        assert matches(draw(two_steps(converted=99)), min_ns=50_000)

    def test_for_few_elements(self) -> None:
        assert matches(draw(two_steps(shaped="dims=257 types=float")))
        assert not matches(draw(two_steps(shaped="dims=256 types=float")))
        assert matches(draw(two_steps(shaped="dims=256 types=float")), min_elements=100)

    def test_for_an_array_which_is_copied_at_once(self) -> None:
        assert not matches(draw(two_steps().replace("aten::empty", "aten::lift_fresh")))

    def test_for_tensors_in_the_list(self) -> None:
        items = "\n".join(f"                aten::item                {at}120-{at}130" for at in (1, 2))
        first, second = step(1), step(2)
        mark = "                aten::to "
        text = first.replace(mark, items.split("\n", maxsplit=1)[0] + "\n" + mark)
        text += second.replace(mark, items.split("\n")[1] + "\n" + mark)
        assert not matches(draw(text))

    def test_for_memory_that_is_allocated_and_moved_by_other_means(self) -> None:
        assert not matches(draw(two_steps().replace("aten::lift_fresh", "aten::alias")))

    def test_for_what_is_made_once(self) -> None:
        other = step(2).replace("aten::lift_fresh", "aten::alias")
        assert not matches(draw(step(1) + other))

    def test_for_what_is_made_outside_all_steps(self) -> None:
        text = step(1).replace("ProfilerStep#1", "main.py(3): prepare") + step(2).replace(
            "ProfilerStep#2", "main.py(3): prepare"
        )
        later = "\n        ProfilerStep#3 3000-3990\n        ProfilerStep#4 4000-4990"
        assert not matches(draw(text + later))

    def test_costs_nothing_while_a_device_works(self) -> None:
        text = two_steps().replace(
            "train.py(9): step               1001-1980", "train.py(9): step 1001-1980 kernel=gemm@1002-2999"
        )
        (finding,) = findings(TensorFromPythonData, draw(text, A100))
        assert finding.cost_ns == 0

    def test_without_stacks(self) -> None:
        assert "with_stack" in reason_not_checked(
            TensorFromPythonData, draw("aten::lift_fresh 0-10 dims=1000 types=float")
        )
