"""Scan a tree once: what rules find in it follows from the tree and the rules."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from patchkit.explain.terrain import Overlay
from patchkit.memory import memory_path, recall, remember
from patchkit.recipes.sites import Site
from patchkit.recipes.values import Rule
from patchkit.residual.scanning import Scan, scan_tree

#: Raise it when the same rules could find something else in the same tree.
_FORM = 1


def scan_once(cache: Path, source: Overlay, tree: str, rules: Sequence[Rule]) -> Scan:
    """Every site of the rules in a tree, as `scan_tree` finds them; kept below the cache folder."""
    path = memory_path(
        cache, "scans", [_FORM, version("ast-grep-py"), tree, [repr(rule) for rule in rules]]
    )
    kept = _scan(recall(path))
    if kept is not None:
        return kept
    scan = scan_tree(source, tree, rules)
    if not scan.lacking:  # what is not here may be here the next time
        remember(path, to_builtins(scan))
    return scan


def _scan(data: Any) -> Scan | None:
    try:
        sites = tuple(Site(**{**each, "cut": tuple(each["cut"])}) for each in data["sites"])
        return Scan(sites, tuple(data["rules"]), data["files"])
    except (KeyError, TypeError):
        return None
