"""Tools for developing TorchTidy itself; not part of the wheel."""
