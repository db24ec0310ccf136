"""Manifests: text -> frozen values. No network, and no disk beyond the files that are read."""
