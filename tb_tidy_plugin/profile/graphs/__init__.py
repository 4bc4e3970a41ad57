"""Replayed graphs, and the captures that name their operators."""
