"""Facts about PyTorch: its operators, the names of its events, and the code that it generates."""
