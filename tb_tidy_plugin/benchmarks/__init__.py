"""Micro-benchmarks: times of a rule's two statements on a device of this machine. `torch` is imported in functions."""
