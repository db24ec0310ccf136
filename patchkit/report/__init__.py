"""Results in forms for machines and reviewers."""
