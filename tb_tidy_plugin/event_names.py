"""Names that PyTorch and the runtimes of GPUs give to events.

The patterns of calls match CUDA, its driver, HIP and runtimes with similar names.
"""

from __future__ import annotations

GRAPH_LAUNCH = r"^[a-z]{2,8}GraphLaunch"
GRAPH_INSTANTIATE = r"^[a-z]{2,8}GraphInstantiate"
BEGIN_CAPTURE = r"^[a-z]{2,8}StreamBeginCapture"
END_CAPTURE = r"^[a-z]{2,8}StreamEndCapture"
KERNEL_LAUNCH = r"Launch(?:Cooperative)?Kernel(?!.*Query)|ModuleLaunch"
COPY_OR_FILL = r"Memcpy|Memset"
ASYNC_COPY_OR_FILL = r"Mem(?:cpy|set)\w{0,100}Async"
GIVES_WORK = rf"{KERNEL_LAUNCH}|{GRAPH_LAUNCH}|{ASYNC_COPY_OR_FILL}|AppendLaunchKernel|EnqueueKernelLaunch"
"""Runtime calls that give the device work."""

STREAM_WAIT = r"StreamWaitEvent"

RECORDER_FRAMES = (
    r"(?:^|[/\\])torch[/\\]profiler[/\\]profiler\.py\(\d+\): "
    r"|(?:^|[/\\])tb_tidy_plugin[/\\]capture[/\\](?:profiling|loops|lightning|transformers|recording)\.py\(\d+\): "
)
"""Frames in which a profiler, or TorchTidy's capture, does its own work between two steps."""

MODULE = "nn.Module: "
"""Prefix of the frame of a module's call; the module's class and its number follow."""

BACKWARD_NODE = "autograd::engine::evaluate_function: "
"""Prefix of an operator of the backward pass."""


def class_of_module(frame: str) -> str:
    """The class in the name of a module's frame: `Linear` of `nn.Module: Linear_0`."""
    return frame.removeprefix(MODULE).rpartition("_")[0]
