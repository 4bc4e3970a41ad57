"""Memory that is made, copied or laid out without need."""
