"""What a compilation would be told; nothing reads it."""

import types


class CompilerConfig(types.SimpleNamespace):
    """Settings by name."""
