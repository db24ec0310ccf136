"""Sites of the patched tree that a rule names and no patch covers, against the reviewed ones.

scanning.py looks through the whole tree, baseline.py is the file of what was reviewed, reviewing.py
compares the two.
"""
