"""Micro-benchmarks: what a rule's two statements take on a device of this machine. `torch` is imported in functions."""
