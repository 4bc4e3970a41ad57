"""Run in a process of its own: records one step of compiled programs; `FOLDER OUT [NAME...]`.

`FOLDER` holds the programs; names choose some of them. The kernels of C++ get events of their own, which is a setting
of the recording process only, so that each can be judged.
"""

from __future__ import annotations

import sys
from importlib import import_module

from tb_tidy_plugin.capture import tidy_trace_handler


def main(folder: str, out: str, chosen: list[str]) -> None:
    """Warms the programs up, and records one step."""
    sys.path.insert(0, folder)
    import torch
    from torch._inductor import config

    config.cpp.enable_kernel_profile = True
    programs = import_module("programs")
    run, optimizer, update = programs.steps(chosen)
    programs.step(run, optimizer, update)
    with torch.profiler.profile(record_shapes=True, with_stack=True, on_trace_ready=tidy_trace_handler(out, "worker")):
        programs.step(run, optimizer, update)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
