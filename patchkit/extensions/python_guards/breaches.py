"""What is wrong between components, what is not known, and what of it `check` says.

Values only, apart from `agreement`: what prints them loads no resolver of Python names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from msgspec import Struct

from patchkit.extensions.python_guards.guard_keys import AbsentTarget, DeclaredCall
from patchkit.model.finding import Finding, Severity
from patchkit.model.names import AtLine
from patchkit.model.text import listed


class Breach(str, Enum):
    """How a component does not keep to what another one offers, or that nobody can tell."""

    MODULE = "missing module"
    PACKAGE = "missing package"  # neither a component nor a requirement gives it
    NAME = "missing name"
    ARGUMENTS = "wrong arguments"
    CROSSED = "crossed arguments"
    IDLE = "names nothing"  # a package or entry of the manifest: no module is looked at for it
    OPEN = "open"


class UsePlace(AtLine, Struct, frozen=True):
    """A place that does not fit: `target` is what it names there, defined at `defined`, "" if not.

    `component` is the one whose code `path` and `line` are in (for IDLE the manifest's), `provider`
    the one it leads to, "" for a package that nobody gives. `signature` is what a target that is
    called takes, else "". `reason` is the manifest's, why it need not fit. Of an OPEN place
    `target` is what is written there, and `what` keeps it from being judged.
    """

    breach: Breach
    component: str
    path: str
    line: int
    within: str  # the function or class of the call
    target: str
    what: str
    provider: str = ""
    defined: str = ""
    signature: str = ""
    reason: str = ""

    @property
    def words(self) -> str:
        """What is wrong, with what it names."""
        owner, _, name = self.target.rpartition(".")
        named = self.target in self.what or self.what == f"{owner} has no {name}"
        return self.what if named else f"{self.target} {self.what}"


class Examined(Struct, frozen=True):
    """What was found in so many `modules`: `bound` counts the calls that fit.

    `used` are the declared receivers (their numbers) that a call was found for, `idle` packages
    and entries of the manifest that name no module.
    """

    broken: tuple[UsePlace, ...] = ()  # places that do not fit
    open: tuple[UsePlace, ...] = ()  # places of which nothing could be said
    bound: int = 0
    used: tuple[int, ...] = ()
    modules: int = 1
    idle: tuple[str, ...] = ()


def joined(parts: Sequence[Examined], idle: tuple[str, ...]) -> Examined:
    """What was found in all of them."""
    return Examined(
        broken=tuple(each for part in parts for each in part.broken),
        open=tuple(each for part in parts for each in part.open),
        bound=sum(part.bound for part in parts),
        used=tuple(sorted({number for part in parts for number in part.used})),
        modules=len(parts),
        idle=idle,
    )


class ComponentContracts(Struct, frozen=True):
    """What a component calls in the others.

    `modules` were looked at, `bound` calls into other components fit, `broken` places do not;
    `explained` would be broken if the manifest did not say why they need not fit, `open` are places
    of which that is not known. `findings` are entries of the manifest for nothing.
    """

    component: str
    modules: int
    bound: int
    broken: tuple[UsePlace, ...]
    explained: tuple[UsePlace, ...]
    open: tuple[UsePlace, ...]
    findings: tuple[Finding, ...]


# What `patchkit check` says about contracts: one finding for all places that miss one thing.


#: So many places are named, the rest is counted.
_NAMED = 3


def contract_findings(found: ComponentContracts, command: str) -> Iterator[Finding]:
    """What somebody has to look at; `command` shows the details."""
    look = f"`{command}` shows each place; if this is intended, give the reason under `absent:`"
    groups: dict[tuple[Breach, str, str], list[UsePlace]] = {}
    for each in found.broken:
        groups.setdefault((each.breach, each.target, each.what), []).append(each)
    for (breach, target, what), places in groups.items():
        text = what if target in what else f"{target} {what}"
        others = listed([each.place for each in places[1:]], _NAMED, noun="place")
        more = f", and in {others}" if others else ""
        code = f"contract-{breach.name.lower()}"
        yield Finding(Severity.ERROR, code, f"{text}{more}", places[0].place, look)
    yield from found.findings


def idle_entries(
    unmatched: Iterable[DeclaredCall], unused: Iterable[AbsentTarget]
) -> Iterator[Finding]:
    """Declared calls that no call is, and explanations that nothing needs."""
    for declared in unmatched:
        what = f"no call of {declared.call} is there that could lead to {declared.to}"
        hint = "look for it in the patched files, and correct or delete the entry"
        yield Finding(Severity.ERROR, "contract-unmatched", what, str(declared.where), hint)
    for absent in unused:
        what = f"{absent.name} is declared absent, and nothing that it names is"
        where = str(absent.where)
        yield Finding(Severity.WARNING, "contract-unused", what, where, "delete the declaration")
