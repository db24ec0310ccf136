"""Calls from one component into another: is what they call there, and does it take what they pass?

`traversal` walks the code that runs on this machine (`conditions`) in the modules that a launch can
load, `agreement` binds each call to the signature it finds, for all modules of a manifest,
remembers it, and says what `check` prints of the `breaches`.
"""
