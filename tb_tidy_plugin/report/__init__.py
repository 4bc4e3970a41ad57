"""The report and how it is made: checker, model, text and JSON."""
