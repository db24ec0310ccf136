"""The figures, printed as they come, and as a page of docs/."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from bench.figures import machine, today
from bench.measure import Row

_HEAD = """\
# What it costs

<!-- Written by `{command}`. -->

{subject}. {machine}. {date}.

Ratios to the first row of each table, from paired, interleaved runs: the median and, in brackets,
the quartiles of {rounds} rounds (three times as many for the command line, at most 3 for 1,000
patches). CPU is user and system time with all children; peak is the most memory that one process
held. Smaller is better. Whoever applies a stack ends with files on disk and, but for quilt, with
one commit for each patch.
"""

#: How the rows begin that are no peer's.
_NO_PEERS = ("floor", "patchkit")

_WHY_SLOWER = """\
Above 1 patchkit is the slower one. Of a small stack most of it is no work on patches: Python and
its libraries start, three git processes do, and files move in a way that survives a power cut.
"""

#: The git processes that a command starts for one component of plain files; a test holds them.
PROCESSES = {
    "status": "status rev-parse",
    "apply, nothing to do": "cat-file status",
    "apply, from the base": "cat-file status cat-file update-ref",
    "apply, a patch changed": "cat-file status diff-tree cat-file update-ref",
    "check": "cat-file",
    "refresh, nothing edited": "status cat-file cat-file rev-parse",
    "bump, a commit that was fetched": ("version ls-remote status rev-parse cat-file diff-tree"),
    "drift, nothing new": "version ls-remote cat-file",
}

_ALONG = """\
A first `bump` or `drift` also fetches what is new, and looks along it. It starts as many processes
for 40 commits as for 8, and for 8 patches as for 2. Of files it reads what those were that patches
change, and no others. A test holds that.
"""

_CUT_SHORT = """
This run was ended before its last table.
"""

_ELSEWHERE = """\
## Measured elsewhere

- [Stacks of real commits](benchmarks-real.md), by `make bench-full REPOSITORY=clone`.
- [Large upstreams, long series](evidence.md#how-costs-grow): how costs grow, by `bench/large.py`.
- [Carrying a stack to another base](carry.md), against git, GNU patch and others: `bench/carry`.
- [Drift over a branch](howto/watch-for-drift.md), against trying each commit: `bench/drift.py`.
- [Recipes](recipes-figures.md), over eight months of an upstream: `bench/recipes`.
"""


@dataclass(frozen=True)
class Table:
    """Rows under a title; `note` is Markdown below them."""

    title: str
    rows: tuple[Row, ...]
    note: str = ""


@dataclass
class Page:
    """Prints every table that is added."""

    rounds: int
    subject: str
    tables: list[Table] = field(default_factory=list)

    def add(self, table: Table) -> None:
        if not self.tables:
            print(f"{self.subject[0].upper()}{self.subject[1:]}. {machine()}.", flush=True)
        self.tables.append(table)
        _print(table)

    def write(self, file: Path | None, *, whole: bool = False) -> None:
        """Write the page, if anywhere; as long as it is not `whole` it says so."""
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.markdown() + ("" if whole else _CUT_SHORT), encoding="utf-8")

    def markdown(self) -> str:
        """The page so far."""
        head = _HEAD.format(
            command="python -m bench.run " + " ".join(_arguments()),
            subject=self.subject[0].upper() + self.subject[1:],
            machine=machine(),
            date=today(),
            rounds=self.rounds,
        )
        tables = ["\n".join(_markdown(table)) for table in self.tables]
        return "\n".join([head, *_in_short(self.tables), *_processes(), *tables, _ELSEWHERE])


def _processes() -> Iterator[str]:
    yield "## Git processes\n\nFor one component, all of whose files that change are plain.\n"
    yield "| command | processes |\n|---|---|"
    for command, words in PROCESSES.items():
        yield f"| {command} | {len(words.split())}: {', '.join(words.split())} |"
    yield f"\n{_ALONG}"


def _in_short(tables: Sequence[Table]) -> Iterator[str]:
    """The CPU time of `patchkit apply` as a share of everybody else's."""
    applying = {
        table.title.split()[1]: {row.name: row.cpu.median for row in table.rows if row.cpu}
        for table in tables
        if table.title.startswith("Applying ")
    }
    known = dict.fromkeys(chain(*applying.values()))
    peers = [name for name in known if not name.startswith(_NO_PEERS)]
    if peers:
        yield "## In short\n\nThe CPU time of `patchkit apply` as a share of that of\n"
        yield f"| patches | {' | '.join(peers)} |\n|--:|{'--:|' * len(peers)}"
    for size, ratios in applying.items():
        ours = ratios.get("patchkit apply")
        shares = [f"{ours / ratios[name]:.2f}" if ours and name in ratios else "" for name in peers]
        yield f"| {size} | {' | '.join(shares)} |"
    if applying:
        yield f"\n{_WHY_SLOWER}"


def _print(table: Table) -> None:
    wide = max((len(row.name) for row in table.rows), default=0)
    print(f"\n{table.title}")
    if table.rows:
        print(f"  {'':{wide}}  {'CPU':>17}  {'wall':>17}  {'CPU s':>6}  {'peak':>7}")
    for row in table.rows:
        cells = f"{row.cpu!s:>17}  {row.wall!s:>17}  {row.seconds:6.2f}  {row.peak:4.0f} MiB"
        print(f"  {row.name:{wide}}  {row.missing or cells}")
    if table.note:
        print(f"  {table.note}".replace("\n", "\n  "), flush=True)


def _markdown(table: Table) -> Iterator[str]:
    yield f"## {table.title}\n"
    if table.rows:
        yield "| | CPU | wall | CPU s | peak MiB |\n|---|--:|--:|--:|--:|"
    for row in table.rows:
        cells = f"{row.cpu} | {row.wall} | {row.seconds:.2f} | {row.peak:.0f}"
        yield f"| {row.name} | {f'{row.missing} | | | ' if row.missing else cells} |"
    if table.note:
        yield f"\n{table.note}"
    yield ""


def _arguments() -> Iterator[str]:
    """The command line, with no path of this machine in it."""
    argv = iter(sys.argv[1:])
    for each in argv:
        yield each
        if each == "--repository":
            yield next(argv).rstrip("/") and "CLONE"
