"""Stacks put into installed packages."""
