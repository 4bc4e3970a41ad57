"""The pace at which the host launches device work."""
