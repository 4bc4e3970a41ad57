"""Rules about switches and modes."""
