"""The TensorBoard plugin. Imported by TensorBoard at start-up: keep it free of imports."""
