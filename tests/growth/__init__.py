"""What grows faster than its input."""
