"""One recorded profile that can be asked questions."""
