"""From an event to the line of the user's own code, and the reading of that code."""
