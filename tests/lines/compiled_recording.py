"""Run in a process of its own: records one step of compiled programs; `[--late] FOLDER OUT [NAME...]`.

`FOLDER` holds the programs; names choose some of them. `--late` imports the capture once all is compiled. The kernels
of C++ get events of their own, which is a setting of the recording process only, so that each can be judged.
"""

from __future__ import annotations

import sys
from importlib import import_module

CAPTURE = "tb_tidy_plugin.capture"


def main(folder: str, out: str, chosen: list[str], *, is_late: bool) -> None:
    """Warms the programs up, and records one step."""
    if not is_late:
        import_module(CAPTURE)
    sys.path.insert(0, folder)
    import torch
    from torch._inductor import config

    config.cpp.enable_kernel_profile = True
    programs = import_module("programs")
    run, optimizer, update = programs.steps(chosen)
    programs.step(run, optimizer, update)
    handler = import_module(CAPTURE).tidy_trace_handler(out, "worker")
    with torch.profiler.profile(record_shapes=True, with_stack=True, on_trace_ready=handler):
        programs.step(run, optimizer, update)


if __name__ == "__main__":
    given = [each for each in sys.argv[1:] if each != "--late"]
    main(given[0], given[1], given[2:], is_late="--late" in sys.argv)
