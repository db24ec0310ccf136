"""Lists of patches in the files of other tools, of builders and registries: read, and written where
they are. `listed_pieces` is what all of them are edited by, `package_folders` what `export` writes.
"""
