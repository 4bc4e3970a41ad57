"""The user's own frame behind an event."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, row_of
from tb_tidy_plugin.sources.frames import Frame, is_own_code, parse_frame, stack_of
from tb_tidy_plugin.sources.places import place_of
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.recordings import shared

FRAMES = {
    "train.py(12): step": Frame("train.py", 12, "step", "definition", own_code=True),
    "my project/train.py(12): <lambda>": Frame("my project/train.py", 12, "<lambda>", "definition", own_code=True),
    "C:/jobs/train.py(3): main": Frame("C:/jobs/train.py", 3, "main", "definition", own_code=True),
    "torch/nn/modules/module.py(1773): _call_impl": Frame(
        "torch/nn/modules/module.py", 1773, "_call_impl", "definition", own_code=False
    ),
    "/opt/conda/lib/python3.11/site-packages/foo/bar.py(3): f": Frame(
        "/opt/conda/lib/python3.11/site-packages/foo/bar.py", 3, "f", "definition", own_code=False
    ),
    "threading.py(1002): _bootstrap": Frame("threading.py", 1002, "_bootstrap", "definition", own_code=False),
    "transformers/trainer.py(5): train": Frame("transformers/trainer.py", 5, "train", "definition", own_code=False),
    "torchvision_like/model.py(5): forward": Frame(
        "torchvision_like/model.py", 5, "forward", "definition", own_code=True
    ),
    "test.py(1): <module>": Frame("test.py", 1, "<module>", "definition", own_code=True),
    "model.py(40): torch_dynamo_resume_in_forward_at_47": Frame("model.py", 47, "forward", "definition", own_code=True),
}


@pytest.mark.parametrize("name", FRAMES)
def test_names_of_frames(name: str) -> None:
    assert parse_frame(name) == FRAMES[name]


@pytest.mark.parametrize(
    "name",
    ["<built-in method zeros>", "nn.Module: Linear_0", "unknown", "<frozen importlib>(3): f", "aten::mm", "a(b): c"],
)
def test_what_has_no_file(name: str) -> None:
    assert parse_frame(name) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("train.py(12): step", True),
        ("torch/optim/adam.py(3): step", False),
        ("Optimizer.step#Adam.step", False),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", False),
        ("nn.Module: Linear_0", None),
        ("aten::mm", None),
        ("my optimizer", None),
    ],
)
def test_own_code(name: str, expected: bool | None) -> None:
    assert is_own_code(name) is expected


GENERATED = "zj/czjnfejbdxv64ttdmw7oj5j4zjc6uf3iyojdsx47yei3jacna2c4.py"


@pytest.mark.parametrize(
    "file",
    [
        f"/tmp/torchinductor_me/{GENERATED}", f"cache/{GENERATED}", GENERATED,
        "C:\\Temp\\torchinductor_me\\tmp1\\zj\\anything.py", "torch_compile_debug/run_1/torchinductor/output_code.py",
    ],
)  # fmt: skip
def test_what_a_compiler_wrote(file: str) -> None:
    assert parse_frame(f"{file}(134): call") is None


@pytest.mark.parametrize(
    "file", [GENERATED.replace("zj/", "zk/"), "zj/czj.py", "my_torchinductor.py", "coutput_code.py"]
)
def test_what_only_looks_like_it(file: str) -> None:
    assert parse_frame(f"{file}(134): call") is not None


def test_compiled_code_belongs_to_the_function_that_was_compiled() -> None:
    profile = draw(f"""
train.py(20): step                            0-99
  Torch-Compiled Region: 0/0                  2-90
    model.py(7): forward                      3-89
      CompiledFunction                        4-88
        /tmp/torchinductor_me/{GENERATED}(134): call  5-87
          aten::mm                            6-40
""")
    place = place_of(profile, row_of(profile, "aten::mm"))
    assert place == Frame("model.py", 7, "forward", "definition", own_code=True, compiled="forward")
    assert [frame.function for frame in stack_of(profile, row_of(profile, "aten::mm"))] == ["forward", "step"]


def test_the_nearest_own_frame_wins_over_nearer_library_frames() -> None:
    profile = draw("""
train.py(3): main                         0-100
  train.py(20): step                      1-99
    nn.Module: Linear_0                   2-90
      torch/nn/modules/linear.py(4): forward  3-89
        aten::mm                          4-80
""")
    place = place_of(profile, row_of(profile, "aten::mm"))
    assert place == Frame("train.py", 20, "step", "definition", own_code=True)
    assert [frame.function for frame in stack_of(profile, row_of(profile, "aten::mm"))] == ["forward", "step", "main"]


def test_without_own_frames_the_nearest_one_and_said_so() -> None:
    profile = draw("torch/_ops.py(9): __call__  0-50\n  aten::mm  1-40")
    place = place_of(profile, row_of(profile, "aten::mm"))
    assert place is not None
    assert (place.file, place.own_code) == ("torch/_ops.py", False)


def test_a_kernel_belongs_to_the_line_that_launched_it() -> None:
    profile = draw("train.py(20): step  0-100\n  aten::mm  1-40  kernel=gemm@200-300", A100)
    place = place_of(profile, row_of(profile, "gemm"))
    assert place is not None
    assert place.line == 20


def test_without_stacks_there_is_no_place() -> None:
    profile = draw("aten::mm  1-40")
    assert place_of(profile, row_of(profile, "aten::mm")) is None


def test_call_stacks_of_2021() -> None:
    (path,) = shared("traces/v100_2021_resnet50_workers0").glob("*.gz")
    profile = Profile(read_trace(path))
    (row, *_) = profile.named("aten::conv2d").tolist()
    place = place_of(profile, row)
    assert place is not None
    assert (place.file, place.function, place.own_code) == ("resnet50_profiler_api.py", "<module>", True)
