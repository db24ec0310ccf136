"""Python source read as it is: modules, the names in them, what these stand for. Nothing is run.

`modules` has the modules of a tree and what their names are bound to, `resolve` what a dotted name
leads to, `evaluate` which texts an expression can have, `inference` what an expression is (a
module, a class, an instance), `callables` and `signatures` how something is called.
"""
