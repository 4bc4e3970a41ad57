"""Two versions of a program side by side: time, results, memory, and how far promises were kept."""
