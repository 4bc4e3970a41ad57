"""The ledger: one account of a step in which every nanosecond of wall time belongs to exactly one entry."""
