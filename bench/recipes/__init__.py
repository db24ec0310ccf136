"""A recipe against months of a real upstream: docs/evidence.md."""
