"""Processes, threads, memory and files: what TorchTidy needs of the machine that it runs on."""
