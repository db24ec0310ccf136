"""Packages where they are installed: a stack put into them, attested, and taken back.

`wheel_record` reads what the installer recorded, `layer` what a stack makes of each file (and the
receipt that says so later), `placement` where the stack's files are in a folder.
"""
