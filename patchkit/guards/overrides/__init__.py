"""Functions of one upstream that another one replaces while it runs: are they still what they were?

`replacements` finds the names that are replaced, and what each is in the target's tree and what
of it a replacement depends on, `override_review` what has changed since the review.
"""
