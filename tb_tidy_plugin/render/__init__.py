"""Reports, summaries and comparisons as documents, and the printers of documents."""
