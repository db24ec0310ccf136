"""Benchmarks: ratios to git and to a bare interpreter, never seconds."""
