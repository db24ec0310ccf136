"""Recipes: rules from which a patch is generated, so that it can be made again for any base.

File -> `Recipe` (recipe_file.py) -> sites in files (sites.py) -> new files
(run.py) -> a new tree, and its place in the stack (generate.py). Only sites.py loads ast-grep, and
only when a rule is run.
"""
