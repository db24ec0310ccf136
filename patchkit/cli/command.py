"""How a command is declared: what it says about itself, and the options that several share.

A command's function has the options that are its own. What `takes` names is added to its signature
(`shared_options`), and reaches it as a `Session`, which opens manifest, components, store and
terminal once, in one way for all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from msgspec import Struct
from typer.models import ArgumentInfo

from patchkit.cli.catalog import COMMANDS
from patchkit.errors import ExitCode

Body = Callable[..., ExitCode]

# Options that several commands share, with one name, one help text and one default each.

OfflineOption = Annotated[
    bool, typer.Option("--offline", help="Use only what is cached; never ask the network.")
]
JobsOption = Annotated[
    int,
    typer.Option("--jobs", "-j", metavar="N", min=1, help="How many components at once."),
]
JOBS = 4

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", "-n", help="Say what would be done, and change nothing.")
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Go on where local work is in the way; it is saved under a ref that is named.",
    ),
]


def _option(kind: Any, *names: str, metavar: str | None = None, help: str, **more: Any) -> Any:
    return Annotated[kind, typer.Option(*names, metavar=metavar, help=help, **more)]


def _argument(kind: Any, metavar: str, help: str) -> Any:
    return Annotated[kind, typer.Argument(metavar=metavar, help=help)]


#: What a word of `takes` adds to the end of a command's signature: (keyword, type, default).
_SHARED: dict[str, tuple[str, Any, object]] = {
    "manifest": (
        "manifest",
        _option(
            str | None,
            "--manifest",
            "-m",
            metavar="MANIFEST",
            help="The manifest: a path, or a name in manifests/ or $PATCHKIT_MANIFESTS. "
            "May be left out where there is only one.",
        ),
        None,
    ),
    "manifests": (
        "manifest",
        _option(
            list[str] | None,
            "--manifest",
            "-m",
            metavar="MANIFEST",
            help="A manifest: a path, or a name in manifests/ or $PATCHKIT_MANIFESTS; may be "
            "given several times. Default: all of manifests/.",
        ),
        None,
    ),
    "components": (
        "component",
        _option(
            list[str] | None,
            "--component",
            "-c",
            metavar="COMPONENT",
            help="Only this component; may be given several times. Default: all.",
        ),
        None,
    ),
    "component": (
        "component",
        _option(
            str | None,
            "--component",
            "-c",
            metavar="COMPONENT",
            help="The component. May be left out where there is only one.",
        ),
        None,
    ),
    "workspace": (
        "workspace",
        _option(
            Path | None,
            "--workspace",
            "-w",
            metavar="DIR",
            envvar="PATCHKIT_WORKSPACE",
            help="Where the checkouts are. Default: workspace/ of the project.",
        ),
        None,
    ),
    "cache": (
        "cache",
        _option(
            Path | None,
            "--cache",
            metavar="DIR",
            envvar="PATCHKIT_CACHE",
            help="Where upstreams are kept. Default: the platform's cache folder.",
        ),
        None,
    ),
    "offline": ("offline", OfflineOption, False),
    "json": (
        "json",
        _option(bool, "--json", help="Print the result as JSON (docs/reference/json.md)."),
        False,
    ),
    "quiet": (
        "quiet",
        _option(bool, "--quiet", "-q", help="Say nothing unless something is wrong."),
        False,
    ),
}
_FIRST = ("manifest", "manifests", "components", "component")

#: The argument by which components, or the manifest, can be named without an option.
_NAMES: dict[str, tuple[str, Any, object]] = {
    "components": (
        "names",
        _argument(list[str] | None, "COMPONENT", "Only this component, as with -c. Default: all."),
        None,
    ),
    "component": (
        "names",
        _argument(str | None, "COMPONENT", "The component, as with -c."),
        None,
    ),
    "manifest": (
        "manifests",
        _argument(str | None, "MANIFEST", "The manifest, as with -m."),
        None,
    ),
    "manifests": (
        "manifests",
        _argument(list[str] | None, "MANIFEST", "A manifest: a path, or a name. Default: all."),
        None,
    ),
}


class About(Struct, frozen=True):
    """A command's own words in its help page and in docs/reference."""

    #: (command line, what it does)
    examples: tuple[tuple[str, str], ...]
    #: What each exit code means here; the codes that every command shares are left out.
    exits: Mapping[ExitCode, str]
    #: "module:class" of what `--json` prints; empty for a command without.
    result: str
    #: What the command has in common with others: words of `_SHARED`.
    takes: tuple[str, ...]


_ABOUT: dict[Body, About] = {}


def command(
    takes: str = "",
    *,
    examples: Sequence[tuple[str, str]],
    exits: Mapping[ExitCode, str],
    result: str = "",
) -> Callable[[Body], Body]:
    """Declare a function as the body of a command; see About for the arguments.

    `takes` is words of `_SHARED`, with spaces; "store" stands for "cache offline". The function
    is called with a Session, and with its own options by keyword.
    """

    def declare(body: Body) -> Body:
        words = tuple(takes.replace("store", "cache offline").split())
        _ABOUT[body] = About(tuple(examples), dict(exits), result, words)
        return body

    return declare


@cache
def load_command(name: str) -> Body:
    """A command of the catalog, with all its options as its signature; imports its module."""
    module, function = COMMANDS[name].split(":")
    body: Body = getattr(import_module(f"patchkit.cli.commands.{module}"), function)
    takes = _ABOUT[body].takes

    def command(**options: Any) -> ExitCode:
        from patchkit.cli.session import Session

        shared = {key: options.pop(key) for key in list(options) if key not in own}
        return body(Session(**shared), **options)

    declared = _signature(body, takes)
    own = set(inspect.signature(body).parameters)
    command.__doc__ = body.__doc__
    command.__annotations__ = {each.name: each.annotation for each in declared}
    command.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]
    _ABOUT[command] = _ABOUT[body]
    return command


def _signature(body: Body, takes: Sequence[str]) -> list[inspect.Parameter]:
    """The parameters of a command: arguments, what it works on, its own options, the rest."""
    hints = get_type_hints(body, include_extras=True)
    own = [
        each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for each in list(inspect.signature(body).parameters.values())[1:]
    ]
    arguments = [each for each in own if _is_argument(each.annotation)]
    named = next((_NAMES[word] for word in _NAMES if word in takes and not arguments), None)
    return [
        *arguments,
        *([_parameter(*named)] if named else []),
        *(_parameter(*_SHARED[word]) for word in takes if word in _FIRST),
        *(each for each in own if each not in arguments),
        *(_parameter(*_SHARED[word]) for word in takes if word not in _FIRST),
    ]


def _parameter(keyword: str, kind: Any, default: object) -> inspect.Parameter:
    only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(keyword, only, default=default, annotation=kind)


def _is_argument(hint: Any) -> bool:
    # before Python 3.11 a default of None wraps the annotation in Optional
    declared = [hint, *getattr(hint, "__args__", ())]
    return any(
        isinstance(each, ArgumentInfo)
        for hint in declared
        for each in getattr(hint, "__metadata__", ())
    )


def about(body: Body) -> About:
    """What a command's declaration says."""
    return _ABOUT[body]
