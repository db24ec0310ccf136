"""How each kind of upstream becomes a commit in the store: git, package index, archive."""
