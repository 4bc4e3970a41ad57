"""The host: callers, waits, transfers, and the time that a step waits for."""
