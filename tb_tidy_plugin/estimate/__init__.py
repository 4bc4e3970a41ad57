"""What a fix is worth: edits of the timeline turned into time."""
