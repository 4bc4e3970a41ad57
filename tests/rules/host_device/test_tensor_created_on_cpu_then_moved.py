"""tensor-created-on-cpu-then-moved: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from tb_tidy_plugin.rulekit import Benchmark, Match, Profile
from tb_tidy_plugin.rulekit.testing import A100, MI300, draw, findings, matches_of, reason_not_checked, saving_ns
from tb_tidy_plugin.rules.host_device.tensor_created_on_cpu_then_moved import TensorCreatedOnCpuThenMoved


def matches(profile: Profile) -> tuple[Match, ...]:
    return matches_of(TensorCreatedOnCpuThenMoved, profile)


ONES_TO = """
    ProfilerStep#1            0-900
      train.py(9): step       1-899
        aten::ones            10-200
          aten::empty         11-20
          aten::fill_         30-190   dims=64x64,-  types=float,Scalar
        aten::to              210-500  dims=64x64    types=float
          aten::_to_copy      215-495  dims=64x64    types=float
            aten::empty_strided 220-230
            aten::copy_       240-490  dims=64x64,64x64  types=float,float  copy=HtoD@300-480:16384
        aten::mm              510-890  dims=64x64,64x64  types=float,float  kernel=sgemm@520-880
"""


class TestReports:
    def test_smaller_and_nearer_tensors_where_the_user_sets_it(self) -> None:
        small = draw(ONES_TO.replace("64x64", "16x15").replace(":16384", ":960"), A100)
        assert len(matches_of(TensorCreatedOnCpuThenMoved({"min_bytes": 960}), small)) == 1
        assert not matches_of(TensorCreatedOnCpuThenMoved({"max_distance": 0}), draw(ONES_TO, A100))

    def test_a_factory_then_a_copy_to_the_gpu(self) -> None:
        profile = draw(ONES_TO, A100)
        (match,) = matches(profile)
        assert profile.name(match.anchor) == "aten::to"
        assert [profile.name(row) for row in match.events] == ["aten::ones", "aten::to"]
        assert match.confidence == "high"
        (finding,) = findings(TensorCreatedOnCpuThenMoved, profile)
        assert finding.message == "`ones` makes 16 KiB on the CPU, then `to` copies them to the GPU"
        assert finding.places[0].function == "step"

    def test_amd_too(self) -> None:
        assert len(matches(draw(ONES_TO, MI300))) == 1

    def test_cuda_called_on_the_factorys_result(self) -> None:
        profile = draw(
            """
            train.py(9): step                                        0-900
              <built-in method randn of type object at 0x7f0>        5-205
                aten::randn                                          10-200
                  aten::normal_                                      30-190   dims=64x64  types=float
              <built-in method cuda of Tensor object at 0x7f1>       206-505
                aten::to                                             210-500  dims=64x64  types=float
                  aten::_to_copy                                     215-495  dims=64x64  types=float
                    aten::copy_                                      240-490  copy=HtoD@300-480:16384
            """,
            A100,
        )
        (match,) = matches(profile)
        assert (match.evidence.factory, match.evidence.move) == ("randn", "cuda")

    def test_the_factory_in_a_function_of_its_own(self) -> None:
        profile = draw(
            """
            train.py(9): step        0-900
              train.py(5): mask      5-205
                aten::zeros          10-200
                  aten::zero_        30-190   dims=64x64  types=float
              aten::to               210-500  dims=64x64  types=float  copy=HtoD@300-480:16384
            """,
            A100,
        )
        assert len(matches(profile)) == 1

    def test_memory_allocated_and_filled_in_place(self) -> None:
        profile = draw(
            """
            aten::empty    0-9
            aten::uniform_ 10-200   dims=64x64,-,-  types=float,Scalar,Scalar
            aten::to       210-500  dims=64x64      types=float  copy=HtoD@300-480:16384
            """,
            A100,
        )
        (match,) = matches(profile)
        assert match.evidence.factory == "uniform_"

    def test_a_range_whose_size_stands_only_in_its_resize(self) -> None:
        profile = draw(
            """
            aten::arange      0-200
              aten::arange    10-190   dims=-,-,-,0  types=Scalar,Scalar,Scalar,int
                aten::resize_ 20-30    dims=0,-      types=int,ScalarList  scalars=,[4096]
            aten::to          210-500  dims=4096     types=int  copy=HtoD@300-480:16384
            """,
            A100,
        )
        assert len(matches(profile)) == 1

    def test_a_copy_into_memory_of_the_gpu(self) -> None:
        profile = draw(
            """
            aten::ones    0-200
              aten::fill_ 10-190   dims=64x64,-      types=float,Scalar
            aten::copy_   210-500  dims=64x64,64x64  types=float,float  copy=HtoD@300-480:16384
            """,
            A100,
        )
        assert len(matches(profile)) == 1

    def test_work_in_between_lowers_the_confidence(self) -> None:
        profile = draw(
            """
            aten::ones    0-200
              aten::fill_ 10-190   dims=64x64,-  types=float,Scalar
            aten::tril    201-209  dims=64x64    types=float
            aten::to      210-500  dims=64x64    types=float  copy=HtoD@300-480:16384
            """,
            A100,
        )
        (match,) = matches(profile)
        assert (match.confidence, match.evidence.distance) == ("medium", 2)

    def test_each_function_is_one_finding(self) -> None:
        step = """
            train.py(9): step  {0}00-{0}99
              aten::ones       {0}01-{0}19
                aten::fill_    {0}02-{0}18  dims=64x64,-  types=float,Scalar
              aten::to         {0}20-{0}90  dims=64x64    types=float  copy=HtoD@{0}30-{0}80:16384"""
        (finding,) = findings(TensorCreatedOnCpuThenMoved, draw("".join(step.format(n) for n in (1, 2, 3)), A100))
        assert finding.matches == 3


class TestSaves:
    def test_the_fill_and_the_copy(self) -> None:
        # aten::fill_ takes 160 µs, aten::copy_ with the wait for the bus 250 µs.
        assert saving_ns(TensorCreatedOnCpuThenMoved, draw(ONES_TO, A100)) == (0, 410_000, 410_000)

    def test_a_benchmark_of_the_same_tensor(self) -> None:
        (match,) = matches(draw(ONES_TO, A100))
        assert TensorCreatedOnCpuThenMoved().benchmark(match.evidence) == Benchmark(
            before="result = torch.ones((64, 64), dtype=torch.float32).to(device)",
            after="result = torch.ones((64, 64), dtype=torch.float32, device=device)",
            setup="import torch",
            devices=("cuda", "mps", "xpu"),
            of_events=True,
        )

    def test_no_benchmark_for_a_factory_with_more_arguments(self) -> None:
        (match,) = matches(draw(ONES_TO.replace("aten::ones", "aten::full"), A100))
        assert TensorCreatedOnCpuThenMoved().benchmark(match.evidence) is None


class TestStaysQuiet:
    def test_a_copy_on_the_cpu(self) -> None:
        text = ONES_TO.replace("  copy=HtoD@300-480:16384", "")
        assert matches(draw(text, A100)) == ()

    def test_a_copy_from_the_gpu(self) -> None:
        assert matches(draw(ONES_TO.replace("HtoD", "DtoH"), A100)) == ()

    def test_a_tensor_made_on_the_gpu(self) -> None:
        text = ONES_TO.replace("types=float,Scalar", "types=float,Scalar  kernel=vectorized_elementwise@195-199")
        assert matches(draw(text, A100)) == ()

    def test_another_shape(self) -> None:
        text = ONES_TO.replace("aten::fill_         30-190   dims=64x64", "aten::fill_         30-190   dims=64x65")
        assert matches(draw(text, A100)) == ()

    def test_another_dtype(self) -> None:
        assert matches(draw(ONES_TO.replace("types=float,Scalar", "types=double,Scalar"), A100)) == ()

    def test_less_than_a_kibibyte(self) -> None:
        text = ONES_TO.replace("64x64", "16x15").replace(":16384", ":960")
        assert matches(draw(text, A100)) == ()

    def test_data_that_came_from_elsewhere(self) -> None:
        assert matches(draw(ONES_TO.replace("aten::ones", "aten::stack"), A100)) == ()

    def test_a_buffer_that_is_kept_and_filled_again(self) -> None:
        profile = draw(
            """
            aten::zero_ 10-200   dims=64x64  types=float
            aten::to    210-500  dims=64x64  types=float  copy=HtoD@300-480:16384
            """,
            A100,
        )
        assert matches(profile) == ()

    def test_a_factory_more_than_five_operators_back(self) -> None:
        work = "\n".join(f"            aten::mul  {201 + n}-{201 + n}" for n in range(5))
        profile = draw(
            f"""
            aten::ones    0-200
              aten::fill_ 10-190   dims=64x64,-  types=float,Scalar
{work}
            aten::to      210-500  dims=64x64    types=float  copy=HtoD@300-480:16384
            """,
            A100,
        )
        assert matches(profile) == ()

    def test_one_factory_explains_one_copy(self) -> None:
        text = ONES_TO + ("        aten::to  891-897  dims=64x64  types=float  copy=HtoD@893-896:16384\n")
        assert len(matches(draw(text, A100))) == 1

    def test_the_same_shape_on_another_thread(self) -> None:
        profile = draw(
            """
            aten::ones    0-200    thread=2
              aten::fill_ 10-190   dims=64x64,-  types=float,Scalar  thread=2
            aten::to      210-500  dims=64x64    types=float  copy=HtoD@300-480:16384
            """,
            A100,
        )
        assert matches(profile) == ()

    def test_pinned_memory(self) -> None:
        text = ONES_TO.replace("copy=HtoD@", "copy=Memcpy_HtoD_(Pinned_->_Device)@")
        assert matches(draw(text, A100)) == ()

    def test_a_profile_without_a_gpu(self) -> None:
        text = ONES_TO.replace("  copy=HtoD@300-480:16384", "").replace("  kernel=sgemm@520-880", "")
        assert "device activity" in reason_not_checked(TensorCreatedOnCpuThenMoved, draw(text))
