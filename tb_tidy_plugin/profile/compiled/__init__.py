"""Compilers, and the code that they generate."""
