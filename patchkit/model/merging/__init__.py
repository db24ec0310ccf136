"""Merge a patch's change of a file with upstream's since then, and say how sure that is."""
