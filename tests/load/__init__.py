"""TensorBoard with the plugin under load: many runs, many readers, and what goes wrong on disks and in processes."""
