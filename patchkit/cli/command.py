"""How a command is declared: what it says about itself, its options, and those that several share;
and how a command line is read.

A command's function has the options that are its own. What `takes` names is added to them
(`parameters_of`), and reaches it as a `Session`, which opens manifest, components, store and
terminal once, in one way for all.

A line that is plain (every option spelled out and known, every value of an obvious kind) is read
here. Any other one is typer's, which also says what is wrong with it (`run_by_typer`), and costs a
fifth of a short command. Whatever is read here, typer reads in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from patchkit.cli.catalog import COMMANDS
from patchkit.errors import ExitCode

if TYPE_CHECKING:
    import inspect

Body = Callable[..., ExitCode]


class ArgumentSpec:
    """An argument in `Annotated[...]`, in the words of typer.Argument."""

    def __init__(self, *, metavar: str, help: str) -> None:
        self.settings: dict[str, Any] = {"metavar": metavar, "help": help}

    names: tuple[str, ...] = ()


class OptionSpec:
    """An option in `Annotated[...]`, in the words of typer.Option; `settings` are its others."""

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str | None = None,
        min: int | None = None,
        envvar: str | None = None,
        formats: list[str] | None = None,
    ) -> None:
        self.names = names
        given = {"help": help, "metavar": metavar, "min": min, "envvar": envvar, "formats": formats}
        self.settings: dict[str, Any] = {
            key: value for key, value in given.items() if value is not None
        }


class ParameterSpec(Struct, frozen=True):
    """An option or argument of a command."""

    #: The keyword that the function gets it by.
    keyword: str
    #: Its type, with None where that is its default.
    kind: Any
    #: Its spelling and help, as the command's signature has them.
    declared: OptionSpec | ArgumentSpec
    #: What it is if nobody says; REQUIRED if somebody must.
    default: object


#: The default of what must be given.
REQUIRED = object()

# Options that several commands share, with one name, one help text and one default each.

OfflineOption = Annotated[
    bool, OptionSpec("--offline", help="Use only what is cached; no network.")
]
JobsOption = Annotated[
    int,
    OptionSpec("--jobs", "-j", metavar="N", min=1, help="How many components at once."),
]
JOBS = 4

DryRunOption = Annotated[
    bool, OptionSpec("--dry-run", "-n", help="Show what would be done, and change nothing.")
]
ForkOption = Annotated[
    bool,
    OptionSpec(
        "--copy-series",
        help="Where other stacks use the series too, give this one its own copy.",
    ),
]
CarefulOption = Annotated[
    bool,
    OptionSpec(
        "--no-fuzz",
        help="Leave in conflict what a person would have to check.",
    ),
]
ForceOption = Annotated[
    bool,
    OptionSpec(
        "--force",
        help="Overwrite local changes, after saving them under a ref.",
    ),
]


def _option(kind: Any, *names: str, metavar: str | None = None, help: str, **more: Any) -> Any:
    return Annotated[kind, OptionSpec(*names, metavar=metavar, help=help, **more)]


def _argument(kind: Any, metavar: str, help: str) -> Any:
    return Annotated[kind, ArgumentSpec(metavar=metavar, help=help)]


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
        _option(bool, "--quiet", "-q", help="Print nothing unless something is wrong."),
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
    #: More classes that `--json` prints, by the command with the option for it: "apply into".
    variants: Mapping[str, str]


_ABOUT: dict[Body, About] = {}


def command(
    takes: str = "",
    *,
    examples: Sequence[tuple[str, str]],
    exits: Mapping[ExitCode, str],
    result: str = "",
    variants: Mapping[str, str] | None = None,
) -> Callable[[Body], Body]:
    """Declare a function as the body of a command; see About for the arguments.

    `takes` is words of `_SHARED`, with spaces; "store" stands for "cache offline". The function
    is called with a Session, and with its own options by keyword.
    """

    def declare(body: Body) -> Body:
        words = tuple(takes.replace("store", "cache offline").split())
        more = dict(variants or {})
        _ABOUT[body] = About(tuple(examples), dict(exits), result, words, more)
        return body

    return declare


def body_of(name: str) -> Body:
    """The function of a command of the catalog; imports its module."""
    module, function = COMMANDS[name].split(":")
    body: Body = getattr(import_module(f"patchkit.cli.commands.{module}"), function)
    return body


def parameters_of(body: Body) -> tuple[ParameterSpec, ...]:
    """What a command takes: arguments, what it works on, its own options, the rest."""
    takes = _ABOUT[body].takes
    own = _own_parameters(body)
    arguments = [each for each in own if isinstance(each.declared, ArgumentSpec)]
    named = next((_NAMES[word] for word in _NAMES if word in takes and not arguments), None)
    return (
        *arguments,
        *([_shared(*named)] if named else []),
        *(_shared(*_SHARED[word]) for word in takes if word in _FIRST),
        *(each for each in own if each not in arguments),
        *(_shared(*_SHARED[word]) for word in takes if word not in _FIRST),
    )


def _own_parameters(body: Any) -> list[ParameterSpec]:
    """Those of the function itself, after its session; its annotations are text, or evaluated."""
    code, defaults = body.__code__, dict(body.__kwdefaults__ or {})
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if body.__defaults__:
        positional = names[: code.co_argcount][-len(body.__defaults__) :]
        defaults |= dict(zip(positional, body.__defaults__, strict=True))
    found = []
    for name in names[1:]:
        hint = body.__annotations__[name]
        if isinstance(hint, str):
            hint = eval(hint, body.__globals__)
        found.append(_shared(name, hint, defaults.get(name, REQUIRED)))
    return found


def _shared(keyword: str, hint: Any, default: object) -> ParameterSpec:
    return ParameterSpec(keyword, hint.__origin__, hint.__metadata__[0], default)


def call_body(body: Body, options: Mapping[str, Any]) -> ExitCode:
    """Run a command with all its options: those that several share make its session."""
    from patchkit.cli.session import Session

    code = body.__code__
    own = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    shared = {key: value for key, value in options.items() if key not in own}
    return body(Session(**shared, own=own), **{key: options[key] for key in own})


def read_plainly(
    parameters: Sequence[ParameterSpec], words: Sequence[str]
) -> dict[str, Any] | None:
    """The options of a plain command line, as typer would read them; None if it is not plain."""
    given: dict[str, list[str]] = {}
    named = {name: each for each in parameters for name in each.declared.names}
    rest: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if not word.startswith("-") or word == "-":
            rest.append(word)
            continue
        name, equals, value = word.partition("=")
        option = named.get(name)
        if option is None or (equals and not name.startswith("--")):
            return None
        if option.kind is bool:
            if equals:
                return None
        elif not equals:
            value = next(waiting, "-")
            if value.startswith("-"):
                return None
        given.setdefault(option.keyword, []).append(value)
    arguments = [each for each in parameters if isinstance(each.declared, ArgumentSpec)]
    if rest and len(arguments) != 1:
        return None
    for argument in arguments:
        given |= {argument.keyword: rest} if rest else {}
    try:
        return {each.keyword: _value(each, given.get(each.keyword)) for each in parameters}
    except ValueError:
        return None


#: How the text of a value is taken, and whether there may be several; other kinds are typer's.
_KINDS: tuple[tuple[Any, Callable[[str], Any], bool], ...] = (
    (str, str, False),
    (str | None, str, False),
    (Path, Path, False),
    (Path | None, Path, False),
    (list[str], str, True),
    (list[str] | None, str, True),
    (list[Path], Path, True),
    (list[Path] | None, Path, True),
)


def _value(parameter: ParameterSpec, given: Sequence[str] | None) -> Any:
    """The value of a parameter; ValueError for what typer has to look at."""
    variable = str(parameter.declared.settings.get("envvar", ""))
    if given is None and variable and os.environ.get(variable):
        given = [os.environ[variable]]
    if given is None:
        if parameter.default is REQUIRED:
            raise ValueError
        return parameter.default
    if parameter.kind is bool and not any(given):
        return True
    if parameter.kind is int and len(given) == 1 and given[0].isascii():
        number = int(given[0]) if given[0].isdigit() else -1
        if number >= max(0, parameter.declared.settings.get("min", 0)):
            return number
    for kind, take, several in _KINDS:
        if parameter.kind == kind and (several or len(given) == 1):
            return [take(each) for each in given] if several else take(given[0])
    raise ValueError


def declare_alike(body: Body, said: About) -> None:
    """Let `about` say of a function what was declared of another."""
    _ABOUT[body] = said


def about(body: Body) -> About:
    """What a command's declaration says."""
    return _ABOUT[body]


# Commands as typer knows them: for lines that are not plain, for help pages and the reference.


def run_by_typer(name: str, words: Sequence[str]) -> ExitCode:
    """Run a command; what is wrong with the line is an exception of typer's (`failure.py`)."""
    import typer

    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(add_help_option=False)(load_command(name))
    command = typer.main.get_command(app)
    # not `command.main`: it takes a broken pipe for an error of its own
    with command.make_context(f"patchkit {name}", list(words)) as context:
        return ExitCode(command.invoke(context))


@cache
def load_command(name: str) -> Body:
    """A command of the catalog, with all its options as its signature; imports its module."""
    import inspect

    body = body_of(name)

    def command(**options: Any) -> ExitCode:
        return call_body(body, options)

    declared = [_declared(each) for each in parameters_of(body)]
    command.__doc__ = body.__doc__
    command.__annotations__ = {each.name: each.annotation for each in declared}
    command.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]
    declare_alike(command, about(body))
    return command


def _declared(parameter: ParameterSpec) -> inspect.Parameter:
    import inspect

    import typer

    said = parameter.declared
    form: Any = typer.Option if isinstance(said, OptionSpec) else typer.Argument
    return inspect.Parameter(
        parameter.keyword,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if parameter.default is REQUIRED else parameter.default,
        annotation=Annotated[parameter.kind, form(*said.names, **said.settings)],
    )
