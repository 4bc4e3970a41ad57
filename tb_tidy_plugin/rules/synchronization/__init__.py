"""Waits of the host for the device."""
