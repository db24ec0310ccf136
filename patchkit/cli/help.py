"""Help pages and completion without typer: from files that `python -m tools.reference` writes.

`pages/` holds the page of each command, and `commands.tsv`, which completion reads; a test keeps
them fresh.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from os.path import dirname, isdir, isfile, join

from patchkit.cli.catalog import COMMANDS, split_command, subcommands

#: The table of commands and their parameters, a row each: command, names of the option (none: an
#: argument; no names and no value: the command itself), what it takes (nothing: a flag), "*" if it
#: may be repeated, what it is for.
TABLE = "commands.tsv"

#: What `patchkit` alone prints.
ROUND = "round.txt"

_USAGE = 2

#: Commands of git, quilt and StGit that are typed here, and what does that.
_ELSEWHERE = {
    "commit": "`patchkit refresh` records edits and commits in the patches",
    "push": "`patchkit apply` applies the whole series",
    "pop": "`patchkit drop` takes a patch off the series",
    "goto": "`patchkit apply` applies the whole series",
    "series": "`patchkit log` lists the patches",
    "rebase": "`patchkit bump` moves the pin and carries the patches there",
    "update": "`patchkit bump` moves the pin and carries the patches there",
    "upgrade": "`patchkit bump` moves the pin and carries the patches there",
    "pull": "`patchkit bump` moves the pin and carries the patches there",
    "add": "`git add` in the checkout, then `patchkit refresh`",
    "clone": "`patchkit init` writes a manifest, `patchkit apply` makes the checkout",
    "checkout": "`patchkit apply` makes the checkouts, `git switch patchkit` in one goes back",
    "delete": "`patchkit drop` takes a patch off the series",
    "remove": "`patchkit drop` takes a patch off the series",
    "lint": "`patchkit check`, or `patchkit manifest lint`",
}
_PAGES = os.path.join(os.path.dirname(__file__), "pages")


def print_help(words: list[str]) -> int:
    """Print the page of the command that `words` start with, or of patchkit itself.

    Without words: the daily round, a line for each task.
    """
    found = split_command(words)
    if found is not None:
        _print_page(generated(page_file(found[0])))
    elif not words:
        _print_page(generated(ROUND))
    elif words == ["patchkit"]:
        _print_page(generated(page_file("")))
    elif group := subcommands(words[0]):
        _print_page("\n".join(generated(page_file(name)) for name in group))
    else:
        return print_unknown(words)
    return 0


def print_unknown(words: list[str]) -> int:
    """Say on stderr that this is no command, and which one may be meant."""
    from difflib import get_close_matches

    given = words[0].encode("ascii", "backslashreplace").decode()
    if group := subcommands(words[0]):
        print(f"error: {given} needs a subcommand", file=sys.stderr)
        print(f"hint: {', '.join(group)}", file=sys.stderr)
        return _USAGE
    if given.startswith("-"):
        print(f"error: {given} comes before a command", file=sys.stderr)
        at = next((n for n in range(1, len(words)) if split_command(words[n:])), 0)
        line = [*words[at:], *words[:at]] if at else ["COMMAND", "[OPTIONS]"]
        print(f"hint: options come after it: patchkit {' '.join(line)}", file=sys.stderr)
        return _USAGE
    print(f"error: {given}: no such command", file=sys.stderr)
    if given in _ELSEWHERE:
        print(f"hint: {_ELSEWHERE[given]}", file=sys.stderr)
        return _USAGE
    close = get_close_matches(given, COMMANDS, n=2, cutoff=0.6)
    meant = f"did you mean {' or '.join(close)}?" if close else "`patchkit --help` lists them"
    print(f"hint: {meant}", file=sys.stderr)
    return _USAGE


def page_file(name: str) -> str:
    """The file of a command's page; of the overview for ""."""
    return f"{name.replace(' ', '-') or 'patchkit'}.txt"


def generated(file: str) -> str:
    """The text of a generated file."""
    with open(os.path.join(_PAGES, file), encoding="utf-8") as page:
        return page.read()


def _print_page(page: str) -> None:
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for line in page.removesuffix("\n").split("\n"):
        heading = coloured and line.endswith(":") and not line.startswith(" ")
        print(f"\x1b[1m{line}\x1b[0m" if heading else line)


# Answers to the shell's question how a command line may go on.
#
# The shells' scripts (`patchkit completion`) call `patchkit __complete WORD...` with the words
# after `patchkit`, the last one being typed. One candidate a line comes back, with a tab and a
# description where there is one; `:files` or `:folders` asks the shell for its own. This runs at
# every press of the tab key, so it imports little: manifests are not parsed but scanned for the
# names in them.


# The names of manifests, components and patches for completion, found without parsing YAML.
#
# A press of the tab key should cost little more than Python's start, so manifests are scanned
# line by line. What is written in flow style is not found, and then not offered.


_MANIFEST_FOLDER = "manifests"


def names_of_kind(kind: str, before: list[str]) -> list[str]:
    """What can stand for a metavar of `patchkit.cli.command`, after the words `before`.

    Choices are the metavar themselves, each followed by "|".
    """
    if kind == "MANIFEST":
        return [name for folder in _manifest_folders() for name in _yaml_files(folder)]
    if kind == "COMPONENT":
        found = (name for path in _manifests_meant(before) for name in component_names(path))
        return list(dict.fromkeys(found))
    if kind == "PATCH":
        patches = join(_project(), "patches")
        folders = [join(patches, each) for each in _list(patches)]
        return [name for each in folders for name in _list(each) if name.endswith(".patch")]
    return [each for each in kind.split("|") if each] if "|" in kind else []


def component_names(path: str, depth: int = 0) -> list[str]:
    """The keys below `components:` in a manifest and in what it extends, by a look at its lines.

    Wrong for a manifest in flow style, which then completes nothing.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n")
    except OSError:
        return []
    names: list[str] = []
    for parent in _entries(lines, "extends") if depth < 5 else []:
        names += component_names(join(dirname(path), parent), depth + 1)
    names += _keys(lines, "components")
    return list(dict.fromkeys(names))


def _manifests_meant(before: list[str]) -> list[str]:
    """The files of the manifest that the command line names, or of all."""
    named = [
        before[i + 1] for i, word in enumerate(before[:-1]) if word in ("-m", "--manifest")
    ] + [word.partition("=")[2] for word in before if word.startswith("--manifest=")]
    if not named:
        return [join(d, name) for d in _manifest_folders() for name in _yaml_files(d)]
    found = []
    for name in named:
        for folder in ("", *_manifest_folders()):
            for ending in ("", ".yaml", ".yml"):
                path = join(folder, name + ending)
                if isfile(path):
                    found.append(path)
    return found[:1] if len(named) == 1 else found


def _manifest_folders() -> list[str]:
    extra = os.environ.get("PATCHKIT_MANIFESTS", "").split(os.pathsep)
    return [join(_project(), _MANIFEST_FOLDER), *(each for each in extra if each)]


def _project() -> str:
    """The nearest folder with manifests/, from here upwards; "" where that is here, or none is."""
    folder, here = "", os.getcwd()
    while not isdir(join(here, _MANIFEST_FOLDER)):
        if dirname(here) == here:
            return ""
        folder, here = join(folder, ".."), dirname(here)
    return folder


def _yaml_files(folder: str) -> list[str]:
    return [name for name in _list(folder) if name.endswith((".yaml", ".yml"))]


def _list(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _keys(lines: list[str], section: str) -> list[str]:
    """The keys one level below a top-level key."""
    block = _block(lines, section)
    indent = min((len(line) - len(line.lstrip()) for line in block), default=0)
    keys = [line for line in block if len(line) - len(line.lstrip()) == indent and ":" in line]
    return [line.partition(":")[0].strip().strip("'\"") for line in keys]


def _entries(lines: list[str], section: str) -> list[str]:
    """The items of a top-level list, in flow or block style."""
    inline = next((line for line in lines if line.startswith(f"{section}:")), "")
    flow = inline.partition(":")[2].partition("#")[0].strip().strip("[]").split(",")
    block = [line.strip()[2:] for line in _block(lines, section) if line.strip().startswith("- ")]
    return [each.strip().strip("'\"") for each in (*flow, *block) if each.strip()]


def _block(lines: list[str], section: str) -> list[str]:
    """The lines below a top-level key, without comments and empty lines."""
    block: list[str] = []
    inside = False
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0] not in " -":
            inside = line.startswith(f"{section}:")
        elif inside:
            block.append(line)
    return block


def complete(words: list[str]) -> int:
    """Print the candidates for the last of `words`."""
    # bash hands `--option=value` over as three words
    words = [word for word in words[:-1] if word != "="] + [
        word if word != "=" else "" for word in words[-1:]
    ]
    for candidate in candidates(words or [""]):
        sys.stdout.write(candidate + "\n")
    return 0


def candidates(words: list[str]) -> Iterator[str]:
    """The candidates for the last of `words`, each with its description."""
    *before, typed = words
    if before[:1] == ["-C"]:
        if len(before) == 1:
            yield ":folders"
            return
        with suppress(OSError):
            os.chdir(before[1])
        before = before[2:]
    found = split_command(before)
    if found is None:
        yield from _commands(before, typed)
    else:
        yield from _in_command(found[0], found[1], typed)


def _commands(before: list[str], typed: str) -> Iterator[str]:
    if not before and typed.startswith("-"):
        yield from (each for each in ("--help", "--version") if each.startswith(typed))
        return
    seen: dict[str, str] = {}
    summaries = {name: text for name, names, takes, _, text in _rows() if not names and not takes}
    for name in COMMANDS:
        words = name.split()
        if words[: len(before)] == before and len(words) > len(before):
            whole = len(words) == len(before) + 1
            seen.setdefault(words[len(before)], summaries.get(name, "") if whole else "")
    yield from (f"{word}\t{text}" for word, text in seen.items() if word.startswith(typed))


def _in_command(name: str, before: list[str], typed: str) -> Iterator[str]:
    rows = _parameters(name)
    kinds = {each: row[1] for row in rows for each in row[0]}
    if typed.startswith("--") and "=" in typed:
        option, _, value = typed.partition("=")
        for candidate in _values(kinds.get(option, ""), before, value):
            yield candidate if candidate.startswith(":") else f"{option}={candidate}"
    elif before and kinds.get(before[-1]):
        yield from _values(kinds[before[-1]], before, typed)
    elif typed.startswith("-"):
        yield from _options(name, before, typed)
    else:
        given = _arguments_given(before, kinds)
        arguments = [row[1] for row in rows if not row[0]]
        if arguments:
            yield from _values(arguments[min(given, len(arguments) - 1)], before, typed)


def _rows() -> list[list[str]]:
    return [line.split("\t") for line in generated(TABLE).split("\n") if line]


def _parameters(command: str) -> list[tuple[list[str], str, bool, str]]:
    """(names, what it takes, whether it may be repeated, text) of each of a command's."""
    rows = [row for row in _rows() if row[0] == command and (row[1] or row[2])]
    return [
        ([n for n in names.split(",") if n], takes, bool(many), text)
        for _, names, takes, many, text in rows
    ]


def _options(name: str, before: list[str], typed: str) -> Iterator[str]:
    for names, _, repeatable, text in _parameters(name):
        used = any(each in before for each in names) and not repeatable
        if names and names[-1].startswith(typed) and not used:
            yield f"{names[-1]}\t{text}"
    if "--help".startswith(typed):
        yield "--help\tHow the command works, with examples"


def _arguments_given(before: list[str], kinds: dict[str, str]) -> int:
    count, position = 0, 0
    while position < len(before):
        if kinds.get(before[position]):
            position += 1
        elif not before[position].startswith("-"):
            count += 1
        position += 1
    return count


def _values(kind: str, before: list[str], typed: str) -> Iterator[str]:
    if kind == "FILE":
        yield ":files"
    elif kind == "DIR":
        yield ":folders"
    elif kind == "MANIFEST" and "/" in typed:
        yield ":files"
    else:
        yield from (name for name in names_of_kind(kind, before) if name.startswith(typed))
