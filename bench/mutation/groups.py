"""What is mutated, and the tests that have to notice: those of the same part, to be quick."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """Modules (patterns of files) and the tests that are run for them (arguments of pytest)."""

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    leaves_out: tuple[str, ...] = ()


_PLACING = ("hunks", "apply_changes", "tree")
_READING = ("diff_parse", "diff_header", "mail", "mailinfo", "header", "names")


def _model(*names: str) -> tuple[str, ...]:
    return tuple(f"patchkit/model/{name}.py" for name in names)


GROUPS = (
    Group(
        "placing",
        _model(*_PLACING),
        (
            *(
                f"tests/model/test_{name}.py"
                for name in (
                    *("hunks", "apply_changes", "like_git"),
                    *("tree", "tree_faults", "fewfiles", "attribution"),
                )
            ),
            "tests/stack/test_build.py",
            "tests/hostile/test_numbers.py",
        ),
    ),
    Group(
        "reading",
        _model(*_READING),
        (
            *(
                f"tests/model/test_{name}.py"
                for name in (
                    *("diff_parse", "mail", "header", "names", "binary", "trailers"),
                    *("apply_changes", "like_git"),
                )
            ),
            "tests/fuzz",
            "tests/hostile/test_numbers.py",
        ),
    ),
    Group(
        "model",
        ("patchkit/model/*.py",),
        (
            *("tests/model", "tests/stack/test_build.py", "tests/report/test_forms.py"),
            *(
                f"tests/extensions/python_guards/test_{name}.py"
                for name in ("fingerprint", "signatures")
            ),
        ),
        (*_model(*_PLACING, *_READING, "revision"), "patchkit/model/merging/*.py"),
    ),
    Group(
        "merging",
        ("patchkit/model/merging/*.py",),
        (
            *("tests/model/merging", "tests/model/test_texts.py", "tests/carry"),
            "tests/drift/test_silent_changes.py",
        ),
    ),
    Group(
        "carry",
        ("patchkit/carry/*.py", "patchkit/model/revision.py"),
        (
            *("tests/carry", "tests/ops/test_mergers.py"),
            *("tests/model/test_reverse.py", "tests/model/test_revision.py"),
            "tests/model/merging/test_confidence.py",
        ),
    ),
    Group(
        "stack",
        ("patchkit/stack/build.py", "patchkit/stack/patch_files.py"),
        ("tests/stack/test_build.py", "tests/stack/test_patch_files.py"),
    ),
    Group(
        "workspace",
        ("patchkit/workspace/*.py",),
        (
            *("tests/workspace", "tests/ops/test_undo.py", "tests/ops/test_resume.py"),
            "tests/hostile/test_hosts.py",
        ),
        ("patchkit/workspace/waiting.py",),
    ),
    Group(
        "halting",
        ("patchkit/workspace/waiting.py",),
        (
            *("tests/ops/test_resume.py", "tests/workspace/test_waiting.py"),
            "tests/refresh/test_conflict.py",
        ),
    ),
    Group(
        "transaction",
        ("patchkit/disk/transaction.py", "patchkit/disk/files.py", "patchkit/stack/lockfile.py"),
        (
            "tests/disk/test_transaction.py",
            "tests/disk/test_files.py",
            "tests/disk/test_locks.py",
            "tests/stack/test_lockfile.py",
        ),
    ),
)
