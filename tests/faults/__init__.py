"""Calls to the system that fail, one after the other."""
