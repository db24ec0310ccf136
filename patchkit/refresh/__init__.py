"""From a checkout back to patch files: whose edit is it, and what do the patches say then.

`assign` says which patch an edit belongs to, `fold` puts it there, `commit_match` tells which
commit is which patch, `draft` makes the new series of one component from them, `patch_plan` its
patch files, and the proof that they give the tree; `project_files` has all files to write. Where
the pin has moved, `carry_onto` carries the patches, and `conflict` is what stops that.
"""
