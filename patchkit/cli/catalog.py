"""Which commands there are: the one list that typer and the reference read.

A command's module is imported when the command is called. A row is "module:function" below
`patchkit.cli.commands`, and what `--help` says of it, the first line of its docstring.

A command can have forms, each a command of its own that one option chooses: `check --only manifest`
is one of `check`. `--help` lists words, and a word's own help its forms.
"""

from patchkit import entry_points

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Start": {
        "init": ("manifest:init", "Write a manifest, or adopt the patches that are here"),
        "add": ("manifest:add", "Add a component to a manifest"),
        "init --schema": ("manifest:schema", "Print the JSON Schema of manifests"),
        "import": ("transfer:import_", "Adopt patches from elsewhere into a component's series"),
        "import --vendor": ("series:vendor", "Copy patches by reference into the series"),
    },
    "Work with stacks": {
        "fetch": ("apply:fetch", "Fetch what a manifest pins into the cache"),
        "apply": ("apply:apply", "Build each component's stack and move its checkout there"),
        "status": ("status:status", "Show in which state each checkout is"),
        "status --resolved": ("manifest:show", "Print a manifest as it is understood"),
        "check": ("check:check", "Say which patches do not apply to their pins, and why"),
        "check --only manifest": (
            "manifest:lint",
            "Say what is wrong with manifests, with file and line",
        ),
        "check --only tests": (
            "test:test",
            "Run upstream's own tests on the patched components",
        ),
        "refresh": ("refresh:refresh", "Record edits in the checkouts in the patch files"),
        "refresh --from-branch": (
            "refresh:from_branch",
            "Take a branch's own commits into the series that follows it",
        ),
        "edit": ("series:edit", "Change a patch's message, or its name"),
        "drop": ("series:drop", "Remove patches from the series"),
        "move": ("series:move", "Move a patch to another position in the series"),
        "fold": ("series:fold", "Combine patches into another one"),
        "split": ("series:split", "Move a part of a patch into a new one, directly after it"),
        "export": ("transfer:export", "Write a stack for quilt or git am"),
    },
    "Look": {
        "log": ("views:log", "List each component's patches, in order"),
        "show": ("views:show", "Print a patch, or a commit of upstream"),
    },
    "Move with upstream": {
        "drift": ("drift:drift", "Say which upstream commit broke which patch, and when"),
        "bump": ("bump:bump", "Move a component's pin, or all, and carry the patches there"),
        "continue": ("resume:continue_", "Continue a bump after its conflict is resolved"),
        "skip": ("resume:skip", "Continue a bump without the patch in conflict"),
        "abort": ("resume:abort", "Abandon a bump that stopped at a conflict"),
        "undo": ("resume:undo", "Undo what was done last, whatever it was"),
        "undo --show": (
            "saved:show",
            "List what was saved from the checkouts, or print it",
        ),
    },
    "In CI": {
        "ci": ("ci:ci", "Check and look for drift, with one exit code and one report"),
        "ci --matrix": ("ci:matrix", "Print the jobs of a CI matrix: manifests by components"),
        "ci --merge": ("ci:merge", "Merge the results of several jobs into one report"),
        "ci --issues": ("ci:issues", "Write a text for each open cause; close what is fixed"),
    },
}

COMMANDS: dict[str, tuple[str, str]] = {
    name: row for commands in GROUPS.values() for name, row in commands.items()
}

#: The entry points by which an extension brings commands: name -> "module:function".
ENTRY_POINTS = "patchkit.commands"

#: The options by which an extension's forms are chosen.
_OF_EXTENSIONS = ("--only", "--format", "--from", "--rewrites")


def place_of(name: str) -> str:
    """The "module:function" of a command, "" for an unknown one; our own go before extensions'."""
    if name in COMMANDS:
        return f"patchkit.cli.commands.{COMMANDS[name][0]}"
    return entry_points.named(ENTRY_POINTS).get(name, "")


def all_commands() -> list[str]:
    """The names of all commands, those of extensions last."""
    return [*COMMANDS, *entry_points.named(ENTRY_POINTS)]


def forms_of(word: str) -> list[str]:
    """The full names of a command's forms, those of extensions last."""
    return [name for name in all_commands() if name.startswith(f"{word} --")]


def options_of_forms(word: str) -> dict[str, list[str]]:
    """The options that choose between a command's forms -> their full names, ours alone."""
    found: dict[str, list[str]] = {}
    for name in COMMANDS:
        if name.startswith(f"{word} --"):
            found.setdefault(name.split()[1], []).append(name)
    return found


def split_command(words: list[str]) -> tuple[str, list[str]] | None:
    """(command, its arguments) of a command line; None if it does not start with a command.

    Of a command with forms it is the one whose option is anywhere among the arguments.
    """
    if not words:
        return None
    name, *rest = words
    if not place_of(name):
        return None
    given = rest[: rest.index("--")] if "--" in rest else rest
    options = {*_OF_EXTENSIONS, *options_of_forms(name)}
    spelt = [
        part
        for word in given
        for part in (word.split("=", 1) if word.partition("=")[0] in options else [word])
    ]
    # the entry points of extensions are read only where they can matter
    for form in forms_of(name) if options.intersection(spelt) else ():
        option = form.split()[1:]
        for at in range(len(spelt)):
            end = at + len(option)
            if spelt[at:end] == option:
                return form, [*spelt[:at], *spelt[end:], *rest[len(given) :]]
    return name, rest
