"""The folder that `tb-tidy record` puts on `PYTHONPATH`: Python imports its `sitecustomize` when it starts."""
