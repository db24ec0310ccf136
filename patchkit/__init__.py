"""Patch stacks on pinned upstreams: apply them, check them, carry them, see them drift."""

__version__ = "0.1.0"
