"""Rules about the graph that autograd records, and the backward pass."""
