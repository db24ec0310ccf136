"""Does the patched tree hold what its patches are for?

parsing.py: files that could be read before still can. steps.py: texts and rules that the manifest
asks for. running.py: its commands, and only when somebody asks.
"""
