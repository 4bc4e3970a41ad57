"""Two reports compared, and how far the second keeps the promises of the first."""
