"""Tensors of a device in another process."""
