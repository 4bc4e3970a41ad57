"""Data on its way between the host (Python, NumPy, disk) and the device."""
