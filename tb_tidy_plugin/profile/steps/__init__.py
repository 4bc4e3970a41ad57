"""The steps of a recording, their bounds and their duration."""
