"""Names and versions of the files beside a trace that a capture writes in the training job, and a reader finds."""

from __future__ import annotations

CAPTURE_SUFFIX = ".tidy.json.gz"
"""Added to the whole name of a trace file, `.gz` included, to name what the capture noted of the job."""

CAPTURE_VERSION = 1

DEVICE_EVENTS_SUFFIX = ".device_events.json"
"""The same for device times that the trace cannot hold."""

DEVICE_EVENTS_VERSION = 1

LONGEST_LATENCY_NS = 10**9
"""From the start of an operator to that of its work on the device; nothing believes a longer one."""

GRAPH_SUFFIX = ".tidy_graph.json.gz"
"""Ends the name of a file with the capture of a graph."""
