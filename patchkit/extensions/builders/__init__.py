"""What other builders say of patches: SRC_URI of a Yocto recipe, PatchN lines of an RPM spec.

`package_lists` reads and writes their lists, `package_folders` the folders around these.
"""
