"""Patch sets as people have them: found in a carrier's repository, and left where they are.

Read and never run: nothing of the carrier's is executed or changed.
"""
