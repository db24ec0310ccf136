"""What may be asked and proposed: each tool's name, its arguments, and the command that answers.

The arguments are one type, of which each tool takes some fields: clients get a schema from it, and
what they send is read by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from patchkit.cli.command import about

#: A name in the project: no path, which may lead out of it, and no option.
_NAME = r"^[\w@+][\w.@+-]*$"
_WORD = r"^[^\x00-\x1f]*$"


class ToolArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """All that tools take; "" where a client left it out."""

    manifest: (
        Annotated[str, Meta(pattern=_NAME, description="A manifest's name, of several.")] | None
    ) = None
    component: (
        Annotated[str, Meta(pattern=_NAME, description="A component, of several.")] | None
    ) = None
    to: Annotated[
        str,
        Meta(
            pattern=_WORD,
            description="A branch, tag, pattern of tags, commit id or version; `latest` is what "
            "the manifest tracks. An archive is for a person to move.",
        ),
    ] = ""
    what: Annotated[
        str,
        Meta(pattern=_WORD, description="A patch, or an upstream commit."),
    ] = ""
    conflict: Annotated[str, Meta(description="The id that the tool `conflict` tells.")] = ""
    files: Annotated[
        Mapping[str, Sequence[str]],
        Meta(
            description="Path of each file in conflict -> a text for each of its conflicts, in "
            "their order, which takes its place from the first marker to the last."
        ),
    ] = {}
    dropped: Annotated[
        Sequence[str],
        Meta(
            description="Lines of a side that are left out on purpose, and lines that a side took "
            "away and that are kept."
        ),
    ] = ()
    page: Annotated[int, Meta(ge=1, description="The page of a long answer.")] = 1


class Tool(Struct, frozen=True):
    """A tool; `words` are the command whose JSON is its answer.

    `takes` are its arguments beside manifest, component and page, and `needs` those that cannot be
    left out. What is `verbatim` has texts of files, which are handed out as they are. With `runs`
    it runs commands of the manifest, by the option of that name; one that does nothing else is
    there only where that is wanted.
    """

    name: str
    about: str
    words: str
    takes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    writes: bool = False
    verbatim: bool = False
    runs: str = ""
    only_runs: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        known = msgspec.json.schema(ToolArguments)["$defs"][ToolArguments.__name__]["properties"]
        names = ("manifest", "component", *self.takes, *self.needs, "page")
        return {
            "type": "object",
            "properties": {name: known[name] for name in names},
            "required": list(self.needs),
            "additionalProperties": False,
        }


TOOLS = (
    Tool("status", "In which state each checkout is.", "status"),
    Tool("check", "Which patches do not apply to their pins, and why.", "check", runs="--run"),
    Tool("tests", "Upstream's own tests, run.", "check --only tests", only_runs=True),
    Tool("drift", "Which upstream commit broke which patch.", "drift", ("to",)),
    Tool("plan", "How far a stack can go upstream, at what cost.", "plan", ("to",)),
    Tool("log", "The patches of each component, in order.", "log"),
    Tool("show", "A patch, or a commit of upstream.", "show", needs=("what",), verbatim=True),
    Tool(
        "conflict",
        "The conflict that waits: the patch and its reason, upstream's commits on its lines, the "
        "files with zdiff3 markers; and all conflicts that are remembered as resolved.",
        "mcp --only conflict",
        verbatim=True,
    ),
    Tool(
        "propose_bump",
        "Move a component's pin and carry its patches; at a conflict it stops, and that waits.",
        "bump",
        needs=("to",),
        writes=True,
        runs="--run",
    ),
    Tool(
        "propose_merge",
        "Merge the conflict that waits, all files of its patch at once, and go on. Each line that "
        "a side brought is there, each that a side took away is gone, or it is in `dropped`.",
        "mcp --only merge",
        ("dropped",),
        needs=("conflict", "files"),
        writes=True,
        runs="--run-tests",
    ),
)


class CallPlace(Struct, frozen=True):
    """How calls work; `run`: the person who started it lets commands of the manifest run."""

    offline: bool
    run: bool

    def command_line(self, tool: Tool, given: ToolArguments) -> Iterator[str]:
        """That of a tool which is a command: no value stands where it could be an option. Where the
        folders are, its environment says.
        """
        yield from (*tool.words.split(), "--json")
        for name in ("manifest", "component", "to"):
            if value := getattr(given, name):
                yield f"--{name}={value}"
        if self.offline and "offline" in about(tool.words).takes:
            yield "--offline"
        if self.run and tool.runs:
            yield tool.runs
        if given.what:
            yield from ("--", given.what)
