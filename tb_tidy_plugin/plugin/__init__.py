"""The TensorBoard plugin. TensorBoard imports this module at start-up: keep it free of imports."""
