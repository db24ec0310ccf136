"""The languages that rules can be written for, and how their files end."""

from __future__ import annotations

#: ast-grep's name -> endings of files. Others that ast-grep knows are left out: nobody tried them.
LANGUAGES: dict[str, tuple[str, ...]] = {
    "python": (".py", ".pyi"),
    "bash": (".sh", ".bash"),
    "c": (".c", ".h"),
    "cpp": (".cc", ".cpp", ".cxx", ".h", ".hpp", ".hh", ".cu", ".cuh"),
    "go": (".go",),
    "java": (".java",),
    "javascript": (".js", ".mjs", ".cjs"),
    "json": (".json",),
    "rust": (".rs",),
    "typescript": (".ts",),
    "yaml": (".yml", ".yaml"),
}

#: Where the rest of a line after # is a comment.
HASH_COMMENTS = frozenset({"python", "bash", "yaml"})
