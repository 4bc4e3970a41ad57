"""The configuration: from a file and a command line to rules with their thresholds."""
