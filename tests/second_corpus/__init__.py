"""The second corpus: programs in the manner of public ones, with known losses that no rule was tuned on."""
