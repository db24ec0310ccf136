"""Recipes: rules from which a patch is generated, so that it can be made again for any base, and
which find what no patch covers.

File -> `Recipe` (recipe_file.py) -> sites in files (sites.py) -> new files (run.py), which the core
puts into a stack (stack/generated.py). Only sites.py loads ast-grep, and only when a rule is run.
"""
