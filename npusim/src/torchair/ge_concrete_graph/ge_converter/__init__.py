"""A place that others import from; see torchair."""
