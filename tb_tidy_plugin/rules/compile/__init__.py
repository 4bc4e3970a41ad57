"""Rules about `torch.compile`."""
