"""Exit codes of commands."""

DONE, FAIL_ON_REACHED, NOTHING_READ = 0, 1, 2
INTERRUPTED = 130
"""After Ctrl-C, as a shell gives it; what was measured until then is kept."""
