"""Memory: allocations, its use over time, and the allocator's history."""
