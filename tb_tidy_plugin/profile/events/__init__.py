"""The events of a recording: their tree, calls and inputs."""
