"""Imported for what it does to collectives in a graph: nothing, without graphs."""
