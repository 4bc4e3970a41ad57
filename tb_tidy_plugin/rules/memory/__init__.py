"""Memory that is allocated, copied or rearranged needlessly."""
