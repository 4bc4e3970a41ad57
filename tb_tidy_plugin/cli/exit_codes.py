"""Exit codes of commands."""

DONE, FAIL_ON_REACHED, NOTHING_READ = 0, 1, 2
INTERRUPTED = 130
"""Exit code after Ctrl-C, as in a shell; earlier measurements are stored."""
