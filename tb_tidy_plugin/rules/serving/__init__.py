"""Inference servers: losses in their iterations and replayed graphs."""
