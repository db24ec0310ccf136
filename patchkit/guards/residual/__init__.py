"""Sites of the patched tree that a rule names and no patch covers, against the reviewed ones.

`scan` looks through the whole tree, `baseline` is the file of what was reviewed, `review` compares
the two.
"""
