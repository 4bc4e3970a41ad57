"""Memory that is allocated, copied or rearranged without need."""
