"""The recorded profile, and queries on it."""
