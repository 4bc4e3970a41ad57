"""From a trace file to columns."""
