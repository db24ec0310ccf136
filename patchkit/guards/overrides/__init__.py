"""Functions of one upstream that another one replaces while it runs: are they still what they were?

calls.py finds the names that are replaced, standing.py what each is in the target's tree,
fingerprint.py what of it a replacement depends on, review.py what has changed since the review.
"""
