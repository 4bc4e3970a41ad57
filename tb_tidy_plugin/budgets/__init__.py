"""Budgets of a step in the user's own tests: the fixture `tidy` of pytest. This module imports nothing."""
