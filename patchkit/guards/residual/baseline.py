"""The file of reviewed sites, beside the series:

    version: 1
    areas:
      - {rule: "*", path: "tests/**", reason: not run on NPUs}
    sites:
      - {rule: cuda, path: core/a.py, within: A.f, text: "'cuda'", reason: ..., until: "2027-06-30"}
    known:
      - {rule: cuda, path: core/b.py, text: "'cuda'"}

A site is known by its rule, path, the function around it and its text, not by its line, so that
edits elsewhere in the file do not bring it back. `count` says how many alike there are (1 where it
is absent). An entry whose `until` is past counts no more. What is `known` was there when it was
recorded, and nobody has looked at it. patchkit writes the file anew when it
adds to it: comments are lost, reasons are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.files import read_plain
from patchkit.errors import BadInputError, Problem
from patchkit.manifest.types import Complaint, Field, ListOf, Number, Record, Text
from patchkit.manifest.validate import check_shape
from patchkit.manifest.values import Location
from patchkit.manifest.write import flow_mapping
from patchkit.manifest.yaml_nodes import Items, Table, decode, parse
from patchkit.recipes.rule import Scope, check_glob
from patchkit.recipes.sites import Site

_VERSION = 1

# A longer text is cut, and told apart by a hash.
_TEXT = 100

_HEAD = """\
# Sites that somebody has looked at, and below `known` those that nobody has. `patchkit residual
# --accept --reason ...` writes this file anew: comments are lost, reasons are not.
"""


class Fingerprint(Struct, frozen=True, order=True):
    """What a site is known by."""

    path: str
    rule: str
    within: str
    text: str


class ReviewedSite(Struct, frozen=True):
    """`count` sites of one fingerprint; `until` is None where the reason holds for ever.

    Without a reason they are known, not reviewed.
    """

    site: Fingerprint
    reason: str
    count: int = 1
    until: date | None = None
    where: Location | None = None


class ReviewedArea(Struct, frozen=True):
    """All sites of a rule ("*": any) in the files of a glob."""

    rule: str
    path: str
    reason: str
    until: date | None = None
    where: Location | None = None

    def covers(self, site: Site) -> bool:
        """Whether the site is in it."""
        return self.rule in ("*", site.rule) and Scope((self.path,)).covers(site.path)


class Baseline(Struct, frozen=True):
    """What was reviewed, or is known."""

    sites: tuple[ReviewedSite, ...] = ()
    areas: tuple[ReviewedArea, ...] = ()


def fingerprint(site: Site) -> Fingerprint:
    """What a site is known by: blanks and line breaks in its text do not count."""
    text = re.sub(r"\s+", " ", site.text).strip()
    text = "".join(each if each.isprintable() else "?" for each in text)
    if len(text) > _TEXT:
        text = f"{text[:_TEXT]}... {sha256(text.encode()).hexdigest()[:8]}"
    return Fingerprint(site.path, site.rule, site.within, text)


# -- reading -----------------------------------------------------------------------------------


def check_date(text: str) -> Complaint | None:
    """What is wrong with a date."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return Complaint("is no date", 'write it in quotes: "2027-06-30"')
    return None


_REASON = Field("reason", Text("text", lines=True), "Why it may stay.", required=True)
_UNTIL = Field(
    "until", Text("a date", r"\d{4}-\d{2}-\d{2}", check_date, example='"2027-06-30"'), "Until when."
)
_KNOWN_BY = (
    Field("rule", Text("a rule's id"), "The rule that names it.", required=True),
    Field("path", Text("a path"), "The file.", required=True),
    Field("within", Text("a qualified name"), "The function or class around it."),
    Field("text", Text("text"), "What stands there.", required=True),
    Field("count", Number(1, 100_000), "How many alike.", default="1"),
)
_SITE = Record("site", (*_KNOWN_BY, _REASON, _UNTIL))
_KNOWN = Record("known site", _KNOWN_BY)
_AREA = Record(
    "area",
    (
        Field("rule", Text("a rule's id, or *"), "The rule, * for all.", required=True),
        Field("path", Text("a glob", check=check_glob), "The files.", required=True),
        _REASON,
        _UNTIL,
    ),
)
_BASELINE = Record(
    "baseline",
    (
        Field("version", Number(_VERSION, _VERSION), "The format: 1.", required=True),
        Field("areas", ListOf(_AREA, "area"), "Files of which all sites may stay."),
        Field("sites", ListOf(_SITE, "site"), "Sites one by one."),
        Field("known", ListOf(_KNOWN, "known site"), "Sites that nobody has looked at yet."),
    ),
)


def load_baseline(path: Path, name: str) -> Baseline:
    """The baseline in a file, an empty one if there is no such file; `name` is for messages.

    BadInputError with every problem.
    """
    try:
        data = read_plain(path)
    except FileNotFoundError:
        return Baseline()
    except OSError as error:
        raise BadInputError(Problem(str(error.strerror), name)) from error
    table = parse(decode(data, Path(name)), Path(name))
    problems = check_shape(table, _BASELINE, root="the baseline")
    if problems:
        raise BadInputError(*problems)
    assert isinstance(table, Table)
    return Baseline(
        tuple(_site(each) for key in ("sites", "known") for each in _tables(table, key)),
        tuple(_area(each) for each in _tables(table, "areas")),
    )


def _site(table: Table) -> ReviewedSite:
    path, rule, within, text = (table.text(key) for key in ("path", "rule", "within", "text"))
    return ReviewedSite(
        site=Fingerprint(path, rule, within, text),
        reason=table.text("reason").strip(),
        count=int(table.text("count") or 1),
        until=_until(table),
        where=table.where,
    )


def _area(table: Table) -> ReviewedArea:
    rule, path, reason = (table.text(key) for key in ("rule", "path", "reason"))
    return ReviewedArea(rule, path, reason.strip(), _until(table), table.where)


def _until(table: Table) -> date | None:
    text = table.text("until")
    return date.fromisoformat(text) if text else None


def _tables(table: Table, key: str) -> list[Table]:
    node = table.get(key)
    items = node.items if isinstance(node, Items) else ()
    return [each for each in items if isinstance(each, Table)]


# -- writing -----------------------------------------------------------------------------------


def baseline_bytes(baseline: Baseline) -> bytes:
    """The baseline as it stands in its file: sorted, one entry a line."""
    lines = [_HEAD, f"version: {_VERSION}\n"]
    areas = sorted({_area_line(each) for each in baseline.areas})
    lines += ["areas:\n", *areas] if areas else []
    entries = sorted(_merged(baseline.sites), key=lambda each: (each.site, each.reason))
    for key, some in (
        ("sites", [each for each in entries if each.reason]),
        ("known", [each for each in entries if not each.reason]),
    ):
        lines += [f"{key}:\n", *map(_site_line, some)] if some else []
    return "".join(lines).encode()


def _merged(sites: Iterable[ReviewedSite]) -> Iterable[ReviewedSite]:
    """One entry where several say the same."""
    found: dict[tuple[Fingerprint, str, date | None], ReviewedSite] = {}
    for each in sites:
        key = (each.site, each.reason, each.until)
        known = found.get(key)
        found[key] = each if known is None else replace(each, count=known.count + each.count)
    return found.values()


def _site_line(entry: ReviewedSite) -> str:
    site = entry.site
    fields: dict[str, str | int] = {"rule": site.rule, "path": site.path}
    fields |= {"within": site.within} if site.within else {}
    fields["text"] = site.text
    fields |= {"count": entry.count} if entry.count > 1 else {}
    return _line(fields, entry.reason, entry.until)


def _area_line(entry: ReviewedArea) -> str:
    return _line({"rule": entry.rule, "path": entry.path}, entry.reason, entry.until)


def _line(fields: dict[str, str | int], reason: str, until: date | None) -> str:
    more = {"reason": " ".join(reason.split())} if reason else {}
    more |= {"until": until.isoformat()} if until is not None else {}
    return f"  - {flow_mapping({**fields, **more})}\n"
