"""A recipe against months of a real upstream: docs/recipes-figures.md."""
