"""Savings of fixes: edits of the timeline, replayed to get their time."""
