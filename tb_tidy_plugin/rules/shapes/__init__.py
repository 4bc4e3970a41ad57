"""Sizes of tensors that the hardware handles badly."""
