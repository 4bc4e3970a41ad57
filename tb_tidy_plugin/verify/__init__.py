"""Two versions of a program side by side: time, results, memory, and whether promises were kept."""
