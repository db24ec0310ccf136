"""How something is called, and whether a call fits: Python's rules for binding arguments.

A call may leave open what it passes (`*rest`, `**more`): what follows for certain is said, and
nothing else. The oracle of the tests is `inspect.Signature.bind`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from enum import Enum

from msgspec import Struct


class Parameter(Struct, frozen=True):
    """A parameter that takes one argument; `by` is how it can be given."""

    name: str
    by_position: bool = True
    by_name: bool = True
    optional: bool = False


class Signature(Struct, frozen=True):
    """The parameters of a callable in order; `rest` and `more` are the names of * and **, or ""."""

    parameters: tuple[Parameter, ...]
    rest: str = ""
    more: str = ""

    @property
    def positional(self) -> tuple[Parameter, ...]:
        """Those that a position can give."""
        return tuple(each for each in self.parameters if each.by_position)

    def without_first(self) -> Signature:
        """As it is called on an instance: the first position is taken."""
        first = next((p for p in self.parameters if p.by_position), None)
        if first is None:
            return self
        kept = tuple(each for each in self.parameters if each is not first)
        return Signature(kept, self.rest, self.more)

    def named(self, name: str) -> Parameter | None:
        """The parameter that a keyword gives."""
        return next((p for p in self.parameters if p.by_name and p.name == name), None)

    def __str__(self) -> str:
        words: list[str] = []
        star = False
        for number, each in enumerate(self.parameters):
            if not each.by_position and not star:
                words += [f"*{self.rest}" if self.rest else "*"]
                star = True
            words.append(f"{each.name}=..." if each.optional else each.name)
            after = self.parameters[number + 1 : number + 2]
            if not each.by_name and (not after or after[0].by_name):
                words.append("/")
        if self.rest and not star:
            words.append(f"*{self.rest}")
        if self.more:
            words.append(f"**{self.more}")
        return f"({', '.join(words)})"


class Arguments(Struct, frozen=True):
    """What a call passes.

    `positions` has what each positional argument is called where it comes from, "" for no name,
    those before the first `*rest` only; `after` counts the others. `keywords` are given in any
    case, `perhaps` on some ways. `open_rest`, `open_more`: there may be more that syntax does not
    show.
    """

    positions: tuple[str, ...] = ()
    after: int = 0
    keywords: tuple[str, ...] = ()
    perhaps: tuple[str, ...] = ()
    open_rest: bool = False
    open_more: bool = False


class CallFault(str, Enum):
    """Why a call does not fit."""

    TOO_MANY = "too many positional arguments"
    LACKING = "missing argument"
    KEYWORD = "unknown keyword"
    TWICE = "argument given twice"
    CROSSED = "crossed arguments"


class CallMismatch(Struct, frozen=True):
    """One reason why a call does not fit: the parameters or keywords that it is about, and how."""

    misfit: CallFault
    names: tuple[str, ...]
    text: str


def signature_from(arguments: ast.arguments) -> Signature:
    """The signature that a definition writes down."""
    plain = [*arguments.posonlyargs, *arguments.args]
    required = len(plain) - len(arguments.defaults)
    found = [
        Parameter(
            each.arg,
            by_name=number >= len(arguments.posonlyargs),
            optional=number >= required,
        )
        for number, each in enumerate(plain)
    ]
    found += [
        Parameter(each.arg, by_position=False, optional=default is not None)
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    rest, more = arguments.vararg, arguments.kwarg
    return Signature(tuple(found), rest.arg if rest else "", more.arg if more else "")


def mismatches(signature: Signature, given: Arguments) -> tuple[CallMismatch, ...]:
    """Why a call with these arguments cannot work, or probably does not do what is meant.

    Invariant: whatever stays open in the call is taken to be what fits best.
    """
    positional = signature.positional
    count = len(given.positions) + given.after
    found: list[CallMismatch] = []
    if count > len(positional) and not signature.rest:
        text = f"takes {len(positional)} positional arguments, is given {count}"
        found.append(CallMismatch(CallFault.TOO_MANY, (), text))
    names = tuple(dict.fromkeys((*given.keywords, *given.perhaps)))
    if not signature.more:
        unknown = tuple(k for k in dict.fromkeys(given.keywords) if signature.named(k) is None)
        if unknown:
            text = f"takes no argument {_listed(unknown)}"
            found.append(CallMismatch(CallFault.KEYWORD, unknown, text))
    placed = positional[: len(given.positions)]
    twice = tuple(p.name for p in placed if p.by_name and p.name in given.keywords)
    if twice:
        text = f"is given {_listed(twice)} by position and by name"
        found.append(CallMismatch(CallFault.TWICE, twice, text))
    lacking = _lacking(signature, given, names)
    if lacking:
        text = f"needs {_listed(lacking)}"
        found.append(CallMismatch(CallFault.LACKING, lacking, text))
    return tuple(found) or _crossed(signature, given)


def _lacking(signature: Signature, given: Arguments, names: Sequence[str]) -> tuple[str, ...]:
    placed = signature.positional[: len(given.positions) + given.after]
    return tuple(
        each.name
        for each in signature.parameters
        if not each.optional
        and each not in placed
        and not (each.by_name and (each.name in names or given.open_more))
        and not (each.by_position and given.open_rest)
    )


def _crossed(signature: Signature, given: Arguments) -> tuple[CallMismatch, ...]:
    """Arguments that bear the name of another parameter, which gets something else.

    Only the names decide, so only a name that is a parameter's very own counts.
    """
    pairs = list(zip(signature.positional, given.positions, strict=False))
    by_position = {parameter.name: name for parameter, name in pairs}
    known = {parameter.name for parameter in signature.parameters}
    crossed = [
        (parameter.name, name)
        for parameter, name in pairs
        if name in known and name != parameter.name and by_position.get(name, name) != name
    ]
    if not crossed:
        return ()
    told = [f"{name} is passed as {parameter}" for parameter, name in crossed]
    names = tuple(parameter for parameter, _ in crossed)
    return (CallMismatch(CallFault.CROSSED, names, ", ".join(told)),)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
