"""Work that one kernel could do, or that need not be done, spread over several."""
