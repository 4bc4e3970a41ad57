"""Several kernels for work that one kernel could do, or that is not needed."""
