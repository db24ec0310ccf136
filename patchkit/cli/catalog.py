"""Which commands there are: the one list that the dispatcher, help and completion read.

Imported at every start, so it holds nothing but text: a command's module is imported when the
command runs. The value is "module:function" below `patchkit.cli.commands`.
"""

GROUPS: dict[str, dict[str, str]] = {
    "Start": {
        "init": "init:init",
        "import": "import_:import_",
        "manifest lint": "manifest:lint",
        "manifest show": "manifest:show",
        "manifest schema": "manifest:schema",
    },
    "Work with stacks": {
        "fetch": "fetch:fetch",
        "apply": "apply:apply",
        "status": "status:status",
        "check": "check:check",
        "refresh": "refresh:refresh",
        "new": "new:new",
        "take": "take:take",
        "export": "export:export",
    },
    "Look": {
        "diff": "diff:diff",
        "log": "log:log",
        "blame": "blame:blame",
        "graph": "graph:graph",
    },
    "Move with upstream": {
        "drift": "drift:drift",
        "plan": "plan:plan",
        "bump": "bump:bump",
        "continue": "resume:continue_",
        "skip": "resume:skip",
        "abort": "resume:abort",
        "undo": "resume:undo",
        "carry": "carry:carry",
    },
    "Guard": {
        "contracts": "contracts:contracts",
        "overrides": "overrides:overrides",
        "residual": "residual:residual",
    },
    "Patches by recipe": {
        "recipe test": "recipe:test",
        "recipe try": "recipe:try_",
        "recipe new": "recipe:new",
        "recipe induce": "recipe:induce",
    },
    "From manifest to machine": {
        "render": "render:render",
        "doctor": "doctor:doctor",
    },
    "In CI": {
        "ci": "ci:ci",
        "matrix": "matrix:matrix",
        "report merge": "report:merge",
    },
    "Patchkit itself": {
        "completion": "completion:completion",
        "version": "version:version",
    },
}

COMMANDS: dict[str, str] = {
    name: place for commands in GROUPS.values() for name, place in commands.items()
}


def split_command(words: list[str]) -> tuple[str, list[str]] | None:
    """(command, its arguments) of a command line; None if it does not start with a command."""
    for length in (2, 1):
        name = " ".join(words[:length])
        if name in COMMANDS:
            return name, words[length:]
    return None


def subcommands(word: str) -> list[str]:
    """The full names of the commands of a group ("manifest"); empty if it is no group."""
    return [name for name in COMMANDS if name.startswith(word + " ")]
