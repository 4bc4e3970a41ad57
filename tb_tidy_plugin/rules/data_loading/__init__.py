"""Feeding the model: loader, workers, fetch and collate."""
