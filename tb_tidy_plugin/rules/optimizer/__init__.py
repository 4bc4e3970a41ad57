"""The optimizer step and its neighbours."""
