"""Text that no profiler ever wrote, for both decoders."""
