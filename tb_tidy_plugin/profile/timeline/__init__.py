"""The timeline: rows of bars, and the contents of a window."""
