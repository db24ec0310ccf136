"""Calls from one component into another: is what they call there, and does it take what they pass?

`traversal` walks the code that runs on this machine in the modules that a launch can load, those
that may lead elsewhere by their names alone (`contact`) whole; `agreement` binds each call to the
signature it finds, for all modules of a manifest, of which `known_modules` has what was found
before; `breaches` is what `check` prints of it.
"""
