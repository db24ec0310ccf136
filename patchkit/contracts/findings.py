"""What `patchkit check` says about contracts: one finding for all places that miss one thing."""

from __future__ import annotations

from collections.abc import Iterator

from patchkit.contracts.agreement import ComponentAgreement
from patchkit.contracts.breaches import Breach, BrokenCall
from patchkit.model.counting import counted
from patchkit.model.lint import Finding, Severity

#: So many places are named, the rest is counted.
_NAMED = 3

_CODES = {
    Breach.MODULE: "module",
    Breach.PACKAGE: "package",
    Breach.NAME: "name",
    Breach.ARGUMENTS: "arguments",
    Breach.CROSSED: "crossed",
}


def contract_findings(found: ComponentAgreement, command: str) -> Iterator[Finding]:
    """What somebody has to look at; `command` shows the details."""
    look = f"`{command}` shows each place; if it is right so, say why under `absent:`"
    groups: dict[tuple[Breach, str, str], list[BrokenCall]] = {}
    for each in found.found.broken:
        groups.setdefault((each.breach, each.target, each.what), []).append(each)
    for (breach, target, what), places in groups.items():
        text = what if target in what else f"{target} {what}"
        more = f", and in {places_text(places[1:])}" if len(places) > 1 else ""
        where = places[0].place
        code = f"contract-{_CODES[breach]}"
        yield Finding(Severity.ERROR, code, f"{text}{more}", where, look)
    for declared in found.unmatched:
        what = f"no call of {declared.call} is there that could lead to {declared.to}"
        hint = "look for it in the patched files, and correct or delete the entry"
        yield Finding(Severity.ERROR, "contract-unmatched", what, str(declared.where), hint)
    for absent in found.unused:
        what = f"{absent.name} is declared absent, and nothing that it names is"
        where = str(absent.where)
        yield Finding(Severity.WARNING, "contract-unused", what, where, "delete the declaration")


def places_text(places: list[BrokenCall]) -> str:
    """The first places, and how many more there are."""
    shown = ", ".join(each.place for each in places[:_NAMED])
    more = len(places) - _NAMED
    return f"{shown} and {counted(more, 'more place')}" if more > 0 else shown
