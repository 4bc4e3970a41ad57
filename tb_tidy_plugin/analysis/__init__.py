"""From a path to answers: reads, checks and describes traces, here or in workers, or loads answers from the cache."""
