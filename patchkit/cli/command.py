"""How a command is declared: what it says about itself, its options, and those that several share.

A command's function has the options that are its own, in typer's words. What `takes` names is added
to them, and reaches it as a `Session`, which opens manifest, components, store and terminal once,
in one way for all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct
from typer.core import TyperCommand
from typer.models import ArgumentInfo

from patchkit import entry_points
from patchkit.cli.catalog import COMMANDS, forms_of, options_of_forms, place_of
from patchkit.errors import ExitCode, SurroundingsError, UsageError

Body = Callable[..., ExitCode]

# Options that several commands share, with one name, one help text and one default each.

JobsOption = Annotated[
    int,
    typer.Option("--jobs", "-j", metavar="N", min=1, help="How many components at once."),
]
JOBS = 4

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", "-n", help="Show what would be done, and change nothing.")
]
PatchOption = Annotated[
    str | None,
    typer.Option(
        "--patch",
        "-p",
        metavar="PATCH",
        help="The patch for edits that do not belong to exactly one: its file, number or start.",
    ),
]
NewOption = Annotated[
    str | None,
    typer.Option(
        "--new", metavar="NAME", help="All edits of a checkout make a new patch, at the end."
    ),
]
RestOption = Annotated[
    str | None,
    typer.Option(
        "--rest",
        metavar="NAME",
        help="As --patch, and those edits make a new patch of that name at the end.",
    ),
]
MessageOption = Annotated[
    str,
    typer.Option(
        "--message", metavar="TEXT", help="The new patch's message. Default: from its name."
    ),
]
CarefulOption = Annotated[
    bool,
    typer.Option(
        "--no-fuzz",
        help="Leave in conflict what a person would have to check.",
    ),
]
DiffOption = Annotated[
    bool, typer.Option("--diff", help="Show how each patch differs from the one before.")
]
MergersOption = Annotated[
    bool,
    typer.Option(
        "--run",
        help="Ask the commands under `mergers` in the manifest for files in conflict. Read them "
        "first.",
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Count warnings, and what is style, as errors.")
]
LineOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="REF",
        help="Look along this branch, tag, tag pattern or commit instead of the tracked branch.",
    ),
]
PartialOption = Annotated[
    bool,
    typer.Option(
        "--skip-conflicts",
        help="Leave out the patches that do not fit, as `skip` does.",
    ),
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Overwrite local changes, after saving them under a ref.",
    ),
]


def _parameter(kind: Any, name: str, declared: Any, default: object = None) -> inspect.Parameter:
    annotation = Annotated[kind, declared]
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword_only, default=default, annotation=annotation)


def _option(
    kind: Any, *names: str, help: str, default: object = None, **more: Any
) -> inspect.Parameter:
    declared = typer.Option(*names, help=help, **more)
    return _parameter(kind, names[0].strip("-").replace("-", "_"), declared, default)


def _argument(kind: Any, name: str, metavar: str, help: str) -> inspect.Parameter:
    return _parameter(kind, name, typer.Argument(metavar=metavar, help=help))


#: What a word of `takes` adds to a command's signature.
_SHARED = {
    "manifest": _option(
        str | None,
        "--manifest",
        "-m",
        metavar="MANIFEST",
        help="The manifest: a path, or a name in manifests/ or $PATCHKIT_MANIFESTS. "
        "May be left out where there is only one.",
    ),
    "manifests": _option(
        list[str] | None,
        "--manifest",
        "-m",
        metavar="MANIFEST",
        help="A manifest: a path, or a name in manifests/ or $PATCHKIT_MANIFESTS; may be "
        "given several times. Default: all of manifests/.",
    ),
    "components": _option(
        list[str] | None,
        "--component",
        "-c",
        metavar="COMPONENT",
        help="Only this component; may be given several times. Default: all.",
    ),
    "component": _option(
        str | None,
        "--component",
        "-c",
        metavar="COMPONENT",
        help="The component. May be left out where there is only one.",
    ),
    "workspace": _option(
        Path | None,
        "--workspace",
        "-w",
        metavar="DIR",
        envvar="PATCHKIT_WORKSPACE",
        help="Where the checkouts are. Default: workspace/ of the project.",
    ),
    "cache": _option(
        Path | None,
        "--cache",
        metavar="DIR",
        envvar="PATCHKIT_CACHE",
        help="Where upstreams are kept. Default: the platform's cache folder.",
    ),
    "offline": _option(
        bool, "--offline", help="Use only what is cached; no network.", default=False
    ),
    "json": _option(
        bool,
        "--json",
        help="Print the result as JSON; the reference has its fields.",
        default=False,
    ),
    "quiet": _option(
        bool, "--quiet", "-q", help="Print nothing unless something is wrong.", default=False
    ),
}
_FIRST = ("manifest", "manifests", "components", "component")

#: The argument by which components, or the manifest, can be named without an option.
_NAMES = {
    "components": _argument(
        list[str] | None, "names", "COMPONENT", "Only this component, as with -c. Default: all."
    ),
    "component": _argument(str | None, "names", "COMPONENT", "The component, as with -c."),
    "manifest": _argument(str | None, "manifests", "MANIFEST", "The manifest, as with -m."),
    "manifests": _argument(
        list[str] | None, "manifests", "MANIFEST", "A manifest: a path, or a name. Default: all."
    ),
}


class About(Struct, frozen=True):
    """A command's own words in its help page and in docs/reference."""

    #: What command lines do.
    examples: Mapping[str, str]
    #: What each exit code means here; the codes that every command shares are left out.
    exits: Mapping[ExitCode, str]
    #: "module:class" of what `--json` prints; empty for a command without.
    result: str
    #: What the command has in common with others: words of `_SHARED`.
    takes: tuple[str, ...]
    #: More classes that `--json` prints, by the command with the option for it: "drift bisect".
    variants: Mapping[str, str]
    #: The group of commands in `--help`, of a command that an extension brings.
    group: str

    def all_exits(self) -> list[tuple[int, str]]:
        """(code, meaning) of every code that the command names, and of usage errors."""
        codes = {ExitCode.USAGE: "the command line is wrong", **self.exits}
        return sorted((int(code), meaning) for code, meaning in codes.items())


_ABOUT: dict[Body, About] = {}


def command(
    takes: str = "",
    *,
    examples: Mapping[str, str],
    result: str = "",
    variants: Mapping[str, str] | None = None,
    group: str = "Extensions",
    **exits: str,
) -> Callable[[Body], Body]:
    """Declare a function as the body of a command; see About for the arguments.

    `takes` is words of `_SHARED`, with spaces; "store" stands for "cache offline". An exit code has
    its meaning by its name, as in `ok="printed"`. The function is called with a Session, and with
    its own options by keyword.
    """

    def declare(body: Body) -> Body:
        words = tuple(takes.replace("store", "cache offline").split())
        more = dict(variants or {})
        codes = {ExitCode[code.upper()]: meaning for code, meaning in exits.items()}
        _ABOUT[body] = About(examples, codes, result, words, more, group)
        return body

    return declare


class Command(TyperCommand):
    """A command whose help page ends with its examples and exit codes."""

    about: About

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write them, and its forms, as typer writes options."""
        forms = []
        for name in forms_of(str(self.name)):
            with suppress(SurroundingsError):  # of an extension that cannot be loaded
                forms.append((name, summary(name)))
        if forms:
            with formatter.section("Forms, with options of their own"):
                formatter.write_dl(forms)
        with formatter.section("Examples"):
            for line, meaning in self.about.examples.items():
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")
                with formatter.indentation(), formatter.indentation():
                    formatter.write_text(meaning)
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), text) for code, text in self.about.all_exits()])


def body_of(name: str) -> Body:
    """The function of a command; imports its module. SurroundingsError for an extension's that
    cannot be loaded.
    """
    place = place_of(name)
    if name not in COMMANDS:
        return entry_points.load(place)  # type: ignore[no-any-return]
    module, _, function = place.partition(":")
    return getattr(import_module(module), function)  # type: ignore[no-any-return]


def about(name: str) -> About:
    """What a command's declaration says; imports its module."""
    return _ABOUT[body_of(name)]


def paragraphs(body: Body) -> list[str]:
    """The docstring's paragraphs; indented ones are kept as they are, others are one line."""
    text = inspect.getdoc(body) or ""
    return [part if part.startswith(" ") else " ".join(part.split()) for part in text.split("\n\n")]


def summary(name: str) -> str:
    """What a command does, in a line; imports the module of an extension's."""
    if name in COMMANDS:
        return COMMANDS[name][1]
    return paragraphs(body_of(name))[0].removesuffix(".")


@cache
def load_command(name: str) -> Command:
    """A command of the catalog, as typer has it; imports its module."""
    body = body_of(name)
    forms = list(_options_of_forms(name))
    parameters = list(_parameters_of(body))
    for declared in (parameter.annotation.__metadata__[0] for parameter in parameters):
        declared.autocompletion = _offering(declared.metavar)
    parameters += forms
    own = inspect.signature(body).parameters

    def run(**options: Any) -> ExitCode:
        from patchkit.cli.session import Session

        chosen = {*own, *(form.name for form in forms)}
        shared = {key: value for key, value in options.items() if key not in chosen}
        given = {key: value for key, value in options.items() if key in own}
        return body(Session(**shared, own=given.keys()), **given)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    kept = (f"\b\n{part}" if part.startswith(" ") else part for part in paragraphs(body))
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = {"help_option_names": ["--help", "-h"]}
    app.command(name, cls=Command, help="\n\n".join(kept), context_settings=settings)(run)
    command = typer.main.get_command(app)
    assert isinstance(command, Command)
    command.about = about(name)
    return command


def _offering(metavar: str) -> Callable[..., Sequence[str]] | None:
    """What a shell is offered for a value, by how help calls it."""

    def offer(ctx: typer.Context, incomplete: str) -> Sequence[str]:
        from patchkit.cli.completion import offered

        return offered(metavar, ctx.params.get("manifest"), incomplete)

    return offer if metavar in ("MANIFEST", "COMPONENT", "PATCH", "PATCH|COMMIT") else None


def _options_of_forms(name: str) -> Iterator[inspect.Parameter]:
    """The options that choose between a command's forms: for its help, and for shells."""

    def values(incomplete: str) -> list[str]:
        found = (form.split()[-1] for form in forms_of(name))
        return [value for value in found if value.startswith(incomplete)]

    def refuse(value: str | None) -> None:
        if value is not None:
            close = get_close_matches(value, values(""), n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(values(''))}"
            raise UsageError(f"{name}: there is no form for {value}", hint=hint)

    for option, forms in options_of_forms(name).items():
        if forms == [f"{name} {option}"]:
            yield _option(bool, option, help=f"{summary(forms[0])}.", default=False)
        else:
            yield _option(
                str | None,
                option,
                metavar="WHAT",
                help="One of the forms below.",
                autocompletion=values,
                callback=refuse,
            )


def _parameters_of(body: Body) -> Iterator[inspect.Parameter]:
    """What a command takes: arguments, what it works on, its own options, the rest."""
    takes = _ABOUT[body].takes
    _, *own = inspect.signature(body, eval_str=True).parameters.values()
    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    arguments = [
        parameter
        for parameter in own
        if isinstance(parameter.annotation.__metadata__[0], ArgumentInfo)
    ]
    yield from arguments or [_NAMES[word] for word in _NAMES if word in takes][:1]
    yield from (_SHARED[word] for word in takes if word in _FIRST)
    yield from (parameter for parameter in own if parameter not in arguments)
    yield from (_SHARED[word] for word in takes if word not in _FIRST)
