"""Python loops in place of one tensor operator."""
