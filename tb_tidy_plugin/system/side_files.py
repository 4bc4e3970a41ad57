"""Names and versions of the files beside a trace that a capture writes in the training job, and a reader finds."""

from __future__ import annotations

CAPTURE_SUFFIX = ".tidy.json.gz"
"""Suffix for the whole name of a trace file, including `.gz`, of the file with the capture's data on the job."""

CAPTURE_VERSION = 1

DEVICE_EVENTS_SUFFIX = ".device_events.json"
"""Suffix for device times that the trace cannot hold."""

DEVICE_EVENTS_VERSION = 1

LONGEST_LATENCY_NS = 10**9
"""Longest plausible time from the start of an operator to that of its work on the device."""

GRAPH_SUFFIX = ".tidy_graph.json.gz"
"""Suffix of a file with the capture of a graph."""
