"""Work of models: operations, modules, training, CPU work."""
