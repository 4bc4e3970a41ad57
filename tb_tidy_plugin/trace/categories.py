"""`Category` of an event, by the name that Kineto used at the time."""

from __future__ import annotations

from tb_tidy_plugin.trace.columns import Category

CATEGORIES = {
    "cpu_op": Category.OPERATOR,
    "user_annotation": Category.ANNOTATION,
    "python_function": Category.PYTHON,
    "cpu_instant_event": Category.MEMORY,
    "cuda_runtime": Category.RUNTIME,  # ROCm too: the names then begin with `hip`
    "cuda_driver": Category.RUNTIME,
    "hip_runtime": Category.RUNTIME,
    "xpu_runtime": Category.RUNTIME,
    "xpu_driver": Category.RUNTIME,
    "mtia_runtime": Category.RUNTIME,
    "privateuse1_runtime": Category.RUNTIME,
    "privateuse1_driver": Category.RUNTIME,
    "kernel": Category.KERNEL,
    "mtia_ccp_events": Category.KERNEL,
    "gpu_memcpy": Category.COPY,
    "gpu_memset": Category.FILL,
    "gpu_user_annotation": Category.DEVICE_ANNOTATION,
    "overhead": Category.OVERHEAD,
    # torch 1.8 and 1.9
    "Operator": Category.OPERATOR,
    "Runtime": Category.RUNTIME,
    "Kernel": Category.KERNEL,
    "Memcpy": Category.COPY,
    "Memset": Category.FILL,
}
NOT_NEEDED = frozenset({"cuda_sync", "hip_sync", "cuda_profiler_range", "critical_path", "mtia_insight", "Trace"})
"""Categories that are known and have no use here."""

PROFILER_SPAN = "Trace"
"""The profiler's own span: not part of the run, never a row."""

UNMARKED_ANNOTATIONS = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)#")
"""In 2021, and by profilers of other vendors, annotations have the category of operators; these are names of the
profiler's own ones.
"""

AS_OPERATORS = ("Operator", "cpu_op")
"""Categories of operators."""

INSTANT_NAMES = frozenset({"[memory]", "[OutOfMemory]"})
"""The instants with data; all others only mark the profiler's window."""


def category_of(label: str) -> Category:
    """The category for one `cat` of a trace; `OTHER` for unknown ones."""
    return CATEGORIES.get(label, Category.OTHER)


def is_known(label: str) -> bool:
    """True if the `cat` of a trace is understood, whether it is of use or not."""
    return label in CATEGORIES or label in NOT_NEEDED


def is_unmarked_annotation(name: str) -> bool:
    """True if an operator with this name is an annotation."""
    return name.startswith(UNMARKED_ANNOTATIONS)
