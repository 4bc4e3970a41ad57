"""Names that PyTorch and the runtimes of GPUs give to events.

The patterns of calls match CUDA, its driver, HIP and runtimes with similar names.
"""

from __future__ import annotations

import re

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

TO_DEVICE = re.compile(r"HtoD|HostToDevice", re.IGNORECASE)
TO_HOST = re.compile(r"DtoH|DeviceToHost", re.IGNORECASE)
SYNCHRONISATION = re.compile(
    r"(cuda|hip|cu)(Stream|Device|Event|Ctx)Synchronize|^(cuda|hip)Memcpy$|^hipMemcpyWithStream|Memcpy.{0,100}Sync$"
)
"""Runtime calls that return only when the device has caught up; ROCm copies and waits in one call."""

GARBAGE_COLLECTION = re.compile(r"^Python GC")
COMPILATION = re.compile(
    r"torch/_dynamo/convert_frame\.py|torch/_inductor/compile_fx\.py|entire_frame_compile|backend_compile|_compile\.compile_inner"
)
BACKWARD = re.compile(
    r"^autograd::engine::evaluate_function|torch/_tensor\.py\(\d+\): backward|^CompiledFunctionBackward"
)

MODULE = "nn.Module: "
"""Prefix of the frame of a module's call; the module's class and its number follow."""

BACKWARD_NODE = "autograd::engine::evaluate_function: "
"""Prefix of an operator of the backward pass."""


def class_of_module(frame: str) -> str:
    """The class in the name of a module's frame: `Linear` of `nn.Module: Linear_0`."""
    return frame.removeprefix(MODULE).rpartition("_")[0]
