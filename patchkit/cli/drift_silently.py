"""What drifted without a conflict, as a person reads it: the worst first, in short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from patchkit.cli.text import Line, Paint, Painted
from patchkit.model.counting import counted
from patchkit.model.names import short_id

if TYPE_CHECKING:
    from patchkit.drift.values import BrokenContract, Landed, MovedTarget, NewSite
    from patchkit.ops.drift import ComponentDrift

# So many are worth reading in a terminal; --json has all.
_SHOWN = 6


def silent_lines(component: ComponentDrift) -> Iterator[Line]:
    """New sites, functions that are replaced and changed, and what could not be looked at."""
    yield from _site_lines(component.sites)
    yield from _target_lines(component.targets)
    yield from _contract_lines(component.contracts)
    for each in component.unseen:
        yield ""
        yield ["  ", Painted("unseen", Paint.NOTICE), f"    {each}"]


def _site_lines(sites: tuple[NewSite, ...]) -> Iterator[Line]:
    if not sites:
        return
    yield ""
    told = counted(len(sites), "new site")
    yield ["  ", Painted(told, Paint.STRONG), " that rules name and nobody has reviewed"]
    for site in sites[:_SHOWN]:
        yield ["    ", Painted(site.rule, Paint.NOTICE), f"  {site.place}"]
        if site.by is not None:
            yield ["      ", *_commit(site.by)]
    yield from _rest(sites)


def _target_lines(targets: tuple[MovedTarget, ...]) -> Iterator[Line]:
    for component in dict.fromkeys(each.component for each in targets):
        order = {"gone": 0, "signature": 1, "body": 2}
        own = [each for each in targets if each.component == component]
        own.sort(key=lambda each: order.get(each.verdict.value, 3))
        yield ""
        many = counted(len(own), "function")
        yield ["  ", Painted(many, Paint.STRONG), f" that {component} replaces changed upstream"]
        for target in own[:_SHOWN]:
            yield ["    ", Painted(target.verdict.value, Paint.NOTICE), f"  {target.name}"]
            if target.by is not None:
                yield ["      ", *_commit(target.by)]
        yield from _rest(own)


def _contract_lines(contracts: tuple[BrokenContract, ...]) -> Iterator[Line]:
    if not contracts:
        return
    yield ""
    many = counted(len(contracts), "call")
    yield ["  ", Painted(many, Paint.STRONG), " between components that upstream broke"]
    for each in contracts[:_SHOWN]:
        place = each.place
        at = f"  {place.component} {place.place}: {place.what}"
        yield ["    ", Painted(place.target, Paint.NOTICE), at]
        if each.by is not None:
            yield ["      ", *_commit(each.by)]
    yield from _rest(contracts)


def _rest(found: Sequence[NewSite | MovedTarget | BrokenContract]) -> Iterator[Line]:
    if len(found) > _SHOWN:
        yield f"    and {len(found) - _SHOWN} more: --json has all"


def _commit(commit: Landed) -> list[str | Painted]:
    request = f" #{commit.request}" if commit.request is not None else ""
    return [
        Painted(short_id(commit.commit), Paint.PLACE),
        f" {commit.day}{request} {commit.author[:40]}",
    ]
