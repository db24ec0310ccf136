"""Does the patched tree hold what its patches are for?

`syntax`: files that could be parsed before still can. `steps`: texts and rules that the manifest
asks for, and its commands, these only when somebody asks.
"""
