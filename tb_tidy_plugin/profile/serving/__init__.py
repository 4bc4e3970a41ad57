"""Iterations of servers that generate text."""
