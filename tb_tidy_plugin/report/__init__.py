"""The contract: what a report holds, as values, as JSON and as SARIF."""
