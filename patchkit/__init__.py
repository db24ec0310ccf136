"""Patch stacks on pinned upstreams: apply them, check them, carry them, see them drift."""

__version__ = "0.1.0"

#: Where the project is published: the one place that names it. OWNER is filled in once, before the
#: first release (RELEASING.md); package metadata, schemas and the documentation follow.
REPOSITORY = "https://github.com/OWNER/patchkit"
