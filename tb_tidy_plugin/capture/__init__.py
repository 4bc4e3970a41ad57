"""For the training script: data that a trace alone cannot hold, written beside it. Never breaks the training job."""

from __future__ import annotations

from tb_tidy_plugin.capture.compiled import THEN, note_compilations
from tb_tidy_plugin.capture.device_events import write_device_events
from tb_tidy_plugin.capture.guarded import unless_it_fails
from tb_tidy_plugin.capture.handler import tidy_trace_handler
from tb_tidy_plugin.capture.marked_steps import tidy_profile
from tb_tidy_plugin.capture.profiling import TidyProfile

__all__ = ["TidyProfile", "tidy_profile", "tidy_trace_handler", "write_device_events"]

unless_it_fails("compiled code", note_compilations, THEN)
