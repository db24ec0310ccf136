"""Calls from one component into another: is what they call there, and does it take what they pass?

traversal.py walks the code that runs on this machine (conditions.py), reach.py finds which modules
a launch can load, examining.py binds each call to the signature it finds, agreement.py does it for
a component and remembers it.
"""
