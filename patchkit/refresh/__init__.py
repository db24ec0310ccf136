"""From a checkout back to patch files: whose edit is it, and what do the patches say then.

`worktree` reads what was edited, `history` what each patch did to those files, `assigning` says
which patch an edit belongs to, `folding` puts it there, `matching` tells which commit is which
patch, `planning` turns it all into new files of the series and proves that they give the tree.
"""
