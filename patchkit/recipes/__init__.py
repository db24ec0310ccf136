"""Recipes: rules from which a patch is generated, so that it can be made anew for any base.

File -> `Recipe` (load.py, fields.py) -> sites in files (sites.py) -> new files (engine.py) -> a new
tree (trees.py) -> its place in the stack (generating.py). Only sites.py loads ast-grep, and only
when a rule is run.
"""
