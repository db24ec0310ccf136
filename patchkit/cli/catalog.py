"""Which commands there are: the one list that the dispatcher, help and completion read.

Imported at every start, so it holds nothing but text: a command's module is imported when the
command runs. The value is "module:function" below `patchkit.cli.commands`.
"""

GROUPS: dict[str, dict[str, str]] = {
    "Start": {
        "init": "manifest:init",
        "import": "transfer:import_",
        "manifest lint": "manifest:lint",
        "manifest show": "manifest:show",
        "manifest schema": "manifest:schema",
    },
    "Work with stacks": {
        "fetch": "apply:fetch",
        "apply": "apply:apply",
        "status": "status:status",
        "check": "check:check",
        "refresh": "refresh:refresh",
        "new": "refresh:new",
        "edit": "series:edit",
        "rename": "series:rename",
        "drop": "series:drop",
        "move": "series:move",
        "fold": "series:fold",
        "split": "series:split",
        "vendor": "transfer:vendor",
        "export": "transfer:export",
    },
    "Look": {
        "diff": "views:diff",
        "log": "views:log",
        "show": "views:show",
        "blame": "views:blame",
        "graph": "views:graph",
    },
    "Move with upstream": {
        "drift": "drift:drift",
        "plan": "plan:plan",
        "bump": "bump:bump",
        "continue": "resume:continue_",
        "skip": "resume:skip",
        "abort": "resume:abort",
        "undo": "resume:undo",
        "saved list": "saved:list_",
        "saved show": "saved:show",
        "saved restore": "saved:restore",
        "saved drop": "saved:drop",
        "carry": "carry:carry",
        "bisect": "bisect:bisect",
    },
    "Guard": {
        "contracts": "reviews:contracts",
        "test": "test:test",
        "overrides": "reviews:overrides",
        "scan": "reviews:scan",
    },
    "Patches by recipe": {
        "recipe test": "recipe:test",
        "recipe try": "recipe:try_",
        "recipe new": "recipe:new",
    },
    "From manifest to machine": {
        "render": "render:render",
        "doctor": "doctor:doctor",
        "sbom": "attest:sbom",
        "attest": "attest:attest",
    },
    "In CI": {
        "ci": "ci:ci",
        "matrix": "ci:matrix",
        "report merge": "ci:merge",
        "report issues": "ci:issues",
    },
    "Patchkit itself": {
        "completion": "installation:completion",
        "version": "installation:version",
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
