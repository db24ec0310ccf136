"""Python source read as it is: modules, the names in them, what these stand for. Nothing is run.

sources.py has the modules of a tree, bindings.py the names that statements bind, resolving.py what
a dotted name leads to, constants.py which texts an expression can have.
"""
