"""Fixes in the user's own code: a rule names the change, and only that change reaches the text."""
