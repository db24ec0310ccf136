"""Structural rules from which patches are generated, and that find what no patch covers."""
