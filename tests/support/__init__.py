"""Helpers that tests share: profiles drawn as text, and the places of recordings."""
