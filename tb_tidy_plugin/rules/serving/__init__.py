"""Inference servers: what their iterations and replayed graphs lose."""
