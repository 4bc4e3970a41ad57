"""Numbers held or computed in a wider format than the work needs."""
