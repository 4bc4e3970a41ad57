"""Several ranks: collectives, runs, stragglers."""
