"""The second corpus: programs in the manner of public ones, with known losses, on which no threshold was tuned."""
