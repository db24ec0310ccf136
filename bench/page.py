"""The figures, printed as they come, and in short between marks of a page of docs/."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from bench.figures import machine, put_between_marks, today
from bench.measure import Row

#: How the rows begin that are no peer's.
_NO_PEERS = ("floor", "patchkit")

#: The git processes that a command starts for one component of plain files; a test holds them.
PROCESSES = {
    "status": "status rev-parse",
    "apply, nothing to do": "cat-file status",
    "apply, from the base": (
        "cat-file status cat-file read-tree checkout-index update-index update-ref"
    ),
    "apply, a patch changed": (
        "cat-file status diff-tree cat-file read-tree checkout-index update-index update-ref"
    ),
    "check": "cat-file",
    "refresh, nothing edited": "status cat-file cat-file rev-parse",
    "bump, a commit that was fetched": ("version ls-remote status rev-parse cat-file diff-tree"),
    "drift, nothing new": "version ls-remote cat-file",
}


@dataclass(frozen=True)
class Table:
    """Rows under a title; `note` is a line below them."""

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

    def write(self, file: Path | None, mark: str, *, whole: bool = False) -> None:
        """Put it into the page, if there is one; as long as it is not `whole` it says so."""
        if file is not None:
            cut = "" if whole else "\n\nThis run was ended before its last table."
            put_between_marks(file, mark, self.markdown() + cut)

    def markdown(self) -> str:
        """What patchkit costs of each first row, and `apply` of everybody."""
        subject = self.subject[0].upper() + self.subject[1:]
        command = " ".join(["python -m bench.run", *_arguments()])
        head = f"\n{subject}. {machine()}. {today()}, `{command}`, {self.rounds} rounds.\n"
        return "\n".join([head, *_in_short(self.tables), *_ours(self.tables)])


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
        yield "The CPU time of `patchkit apply` as a share of that of\n"
        yield f"| patches | {' | '.join(peers)} |\n|--:|{'--:|' * len(peers)}"
    for size, ratios in applying.items():
        ours = ratios.get("patchkit apply")
        shares = [f"{ours / ratios[name]:.2f}" if ours and name in ratios else "" for name in peers]
        yield f"| {size} | {' | '.join(shares)} |"
    if applying:
        yield ""


def _ours(tables: Sequence[Table]) -> Iterator[str]:
    """Each row of ours beside the first of its table."""
    yield "| | beside | CPU | wall | CPU s | peak MiB |\n|---|---|--:|--:|--:|--:|"
    for table in tables:
        for row in table.rows:
            if row.name.startswith("patchkit") and not row.missing:
                figures = f"{row.cpu} | {row.wall} | {row.seconds:.2f} | {row.peak:.0f}"
                yield f"| {row.name} ({_brief(table.title)}) | {table.rows[0].name} | {figures} |"
    yield from (f"\n{table.note}" for table in tables if table.note and not table.rows)


def _brief(title: str) -> str:
    """Of "Applying 50 patches" the part that the command does not say: "50 patches"."""
    first, _, rest = title.partition(" ")
    return rest if first.endswith("ing") and rest else title[0].lower() + title[1:]


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


def _arguments() -> Iterator[str]:
    """The command line, with no path of this machine in it."""
    argv = iter(sys.argv[1:])
    for argument in argv:
        yield argument
        if argument == "--repository":
            yield next(argv).rstrip("/") and "CLONE"
