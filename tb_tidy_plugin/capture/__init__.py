"""Used in the training script: what a trace alone cannot hold, written beside it. Never breaks the training job."""

from __future__ import annotations

from tb_tidy_plugin.capture.device_events import write_device_events

__all__ = ["write_device_events"]
