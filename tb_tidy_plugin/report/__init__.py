"""The public contract: the models of a report, as JSON and as SARIF."""
