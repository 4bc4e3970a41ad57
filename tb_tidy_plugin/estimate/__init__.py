"""Savings of fixes: edits of the timeline turned into time."""
