"""A series on a base, one commit per patch: read, built, exported, locked, imported."""
