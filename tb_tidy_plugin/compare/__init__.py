"""Two reports, and what became of the first one's promises in the second."""
