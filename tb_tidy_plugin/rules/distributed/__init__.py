"""Rules about collectives and parallel training."""
