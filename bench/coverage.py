"""Branch coverage of the last `make coverage`, by package, for docs/evidence.md.

`python -m bench.coverage --write docs/evidence.md` reads what coverage.py recorded: the test
suite itself, and every patchkit that a test started.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from coverage import Coverage

from bench.figures import machine, put_between_marks, today

#: What decides about patches and the user's files, before what shows it.
CORE = ("model", "model/merging", "carry", "workspace", "refresh", "drift")
_KEYS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


@dataclass(frozen=True)
class Count:
    """How many statements and branches there are, and how many of them were taken."""

    statements: int = 0
    reached: int = 0
    branches: int = 0
    taken: int = 0

    def __add__(self, other: Count) -> Count:
        """Both together."""
        return Count(
            self.statements + other.statements,
            self.reached + other.reached,
            self.branches + other.branches,
            self.taken + other.taken,
        )

    def row(self, name: str) -> str:
        """One of the table."""
        return (
            f"| {name} | {self.statements:,} | {_share(self.reached, self.statements)}"
            f" | {self.branches:,} | {_share(self.taken, self.branches)} |"
        )


def main() -> int:
    """Print the table, and write it into a page if one is named."""
    parser = argparse.ArgumentParser(prog="python -m bench.coverage", description=__doc__)
    parser.add_argument("--write", metavar="FILE", help="write the figures into this page")
    options = parser.parse_args()
    text = "\n".join(_table(_by_package()))
    print(text)
    if options.write:
        put_between_marks(Path(options.write), "coverage", text)
    return 0


def _by_package() -> dict[str, Count]:
    """Folder below patchkit/ -> what was taken of its modules, the core first."""
    coverage = Coverage()
    coverage.load()
    report = Path(coverage.config.data_file).with_suffix(".json")
    coverage.json_report(outfile=str(report))
    found: defaultdict[str, Count] = defaultdict(Count)
    for name, file in json.loads(report.read_text(encoding="utf-8"))["files"].items():
        folder = Path(name).parent.as_posix().removeprefix("patchkit").lstrip("/")
        found[folder] += Count(*(file["summary"][key] for key in _KEYS))
    order = [*CORE, "", *sorted(found.keys() - {*CORE, ""})]
    return {folder: found[folder] for folder in order if found[folder].statements}


def _table(packages: Mapping[str, Count]) -> Iterator[str]:
    yield (
        f"{today()}; coverage.py {version('coverage')}; {machine()}."
        "\n\n| | statements | reached | branches | taken |\n|---|--:|--:|--:|--:|"
    )
    for folder, count in packages.items():
        yield count.row(f"`{folder}/`" if folder else "modules of `patchkit/` itself")
    total = Count()
    for count in packages.values():
        total = total + count
    yield total.row("all")


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


if __name__ == "__main__":
    sys.exit(main())
