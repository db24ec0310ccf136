"""What rewrites the text of another upstream: commands of Dockerfiles and shell scripts, and Python
code, each with the file or the name that it means as far as it is written there.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from textwrap import dedent

from msgspec import Struct

from patchkit.extensions.python_guards.modules import Module, Modules, ParsedModules
from patchkit.extensions.python_guards.sed_script import parse_sed
from patchkit.extensions.python_guards.shell_reader import ShellCommand, shell_commands
from patchkit.extensions.python_guards.source_rewrites import rewrites_of
from patchkit.extensions.python_guards.text_edits import UNKNOWN, Rewrite, UnreadableEditError
from patchkit.extensions.python_guards.value_flow import ValueFlow
from patchkit.model.finding import Finding, Severity

#: Larger files are tables, and not looked at.
_LARGEST = 1_000_000
#: What a file has that rewrites something.
_REPLACES = re.compile(rb"\.replace\(|\bre\.sub\(")
_READS = re.compile(rb"getsource|\bopen\(|read_text|read_bytes")
_SHELL = re.compile(rb"\bsed\b|\bpatch\b|git\b[^\n]*\bapply\b|\bpython3?\b")
#: A word of sed's options: letters, and what follows an i, an e or an f.
_OPTION = re.compile(r"-([nErsuz]*)(?:(i).*|(e)(.*)|(f).*)?", re.DOTALL)
#: Options of `git apply` and `patch` with which nothing is patched, or taken back.
_IDLE = frozenset({"--check", "--dry-run", "-R", "--reverse", "--stat", "--numstat"})


class RewriterFiles(Struct, frozen=True):
    """Files that may rewrite others: those of a component's tree, or of the project."""

    paths: Sequence[str]  # all that there are
    chosen: Sequence[str]  # those that are looked at
    read: Callable[[str], bytes | None]


def read_rewrites(carrier: RewriterFiles) -> tuple[list[Rewrite], list[Finding]]:
    """What the chosen files rewrite, by file and line, and what of them is not to be read."""
    reading = _Reading(carrier)
    sources: list[str] = []
    for path in sorted(carrier.chosen):
        data = carrier.read(path) or b""
        if len(data) > _LARGEST:
            reading.unread(f"{path}:1", f"has more than {_LARGEST:,} bytes")
        elif path.endswith(".py"):
            sources.append(path)
        elif _SHELL.search(data):
            is_dockerfile = "dockerfile" in posixpath.basename(path).lower()
            text = data.decode("utf-8", "replace")
            for part in _steps(text) if path.endswith((".yml", ".yaml")) else [text]:
                for command in shell_commands(part, is_dockerfile=is_dockerfile):
                    reading.found += reading.command(path, command)
    reading.python(sources)
    return sorted(reading.found, key=lambda each: (each.path, each.line)), reading.findings


#: A step of a workflow that runs commands: on the line, or in the lines below that are set in more.
_STEP = re.compile(
    r"^( *)(?:- ( *))?run:[ \t]*"
    r"(?:[|>][-+\d]*[ \t]*\n((?:\1(?(2)  \2) +.*\n?|[ \t]*\n)+)|(.+))",
    re.MULTILINE,
)
_EXPRESSION = re.compile(r"\$\{\{.*?\}\}")  # a workflow's own, put in before a shell sees it


def _steps(text: str) -> Iterator[str]:
    """The commands of each step of a workflow, at their lines."""
    for step in _STEP.finditer(_EXPRESSION.sub(UNKNOWN, text)):
        above = step.string.count("\n", 0, step.start(step.lastindex or 0))
        yield "\n" * above + dedent(step[step.lastindex or 0])


class _Reading(Struct):
    carrier: RewriterFiles
    found: list[Rewrite] = []
    findings: list[Finding] = []
    inner: list[Module] = []  # Python in here-documents

    def unread(self, place: str, what: str) -> None:
        """Say that something is not looked at."""
        hint = "nothing in it is watched: look at it by hand, or leave it out of `files`"
        self.findings.append(Finding(Severity.WARNING, "rewrite-unread", what, place, hint))

    def command(self, path: str, command: ShellCommand) -> Iterator[Rewrite]:
        """What a command rewrites."""
        words, files = _own_words(command)
        match words:
            case [sed, *rest] if posixpath.basename(sed) == "sed":
                yield from _sed(path, command, rest, files)
            case ["git", *rest] if "apply" in rest[:3] and not _IDLE & {*rest}:
                yield self._patch(path, command, rest[rest.index("apply") + 1 :])
            case ["patch", *rest] if not _IDLE & {*rest}:
                yield self._patch(path, command, rest)
            case [python, *_] if command.text and re.fullmatch(r".*python[\d.]*", python):
                data = b"\n" * (command.text_line - 1) + command.text.encode()
                name = f"{path} {command.text_line}"
                self.inner.append(ParsedModules().module(name, path, data, ""))

    def _patch(self, path: str, command: ShellCommand, rest: Sequence[str]) -> Rewrite:
        """The patch that a command applies: a here-document, or a file that is here."""
        named = (*(each for each in rest if not each.startswith("-")), command.given)
        names = [each for each in named if each.endswith((".patch", ".diff"))]
        data = command.text.encode() or None
        if data is None and len(names) == 1:
            base = posixpath.basename(names[0])
            own = [each for each in self.carrier.paths if posixpath.basename(each) == base]
            data = self.carrier.read(own[0]) if len(own) == 1 else None
        source = " ".join(names or command.before) or "the patch"
        problem = "" if data else f"{source.replace(UNKNOWN, '?')} is not among these files"
        return Rewrite(path, command.line, command.folder, patch=data, problem=problem)

    def python(self, paths: Sequence[str]) -> None:
        """The rewrites of Python files, and of those that call what is in them."""
        sources = {path: self.carrier.read(path) or b"" for path in paths}
        rewriting = [
            p for p, data in sources.items() if _REPLACES.search(data) and _READS.search(data)
        ]
        names = {posixpath.basename(path)[:-3].encode() for path in rewriting}
        calling = re.compile(rb"\b(?:%s)\b" % b"|".join(map(re.escape, names)))
        calls = [p for p, data in sources.items() if p not in rewriting and calling.search(data)]
        modules = Modules(self.carrier.paths, self.carrier.read)
        found = (modules.at(path) for path in (*rewriting, *(calls if names else ())))
        flow = ValueFlow(modules)
        for module in (*filter(None, found), *self.inner):
            problem = module.problem
            try:
                if not problem:
                    flow.follow(module)
            except (UnreadableEditError, RecursionError) as error:
                problem = str(error)
            if problem:
                line = re.search(r"\bline (\d+)", problem)
                place = f"{module.path}:{line[1] if line else 1}"
                self.unread(place, re.sub(r"^line \d+: ", "", problem))
        self.found += rewrites_of(flow.replaced)


def _own_words(command: ShellCommand) -> tuple[list[str], list[str]]:
    """The words of what a command runs, and the files that `find` names for it."""
    words = list(command.words)
    if words[0] not in ("find", "xargs") or "sed" not in words:
        return words, []
    found = words if words[0] == "find" else list(command.before)
    own = words[words.index("sed") :]
    return [word for word in own if word not in ("{}", ";", "+")], _found(found)


def _found(words: list[str]) -> list[str]:
    """What a `find` finds: a file, or files by a glob."""
    if words[:1] != ["find"] or len(words) < 2:
        return [UNKNOWN]
    names = [after for word, after in pairwise(words) if word == "-name"]
    return [f"{words[1].rstrip('/')}/**{name}" for name in names] or [words[1]]


def _sed(
    path: str, command: ShellCommand, rest: Sequence[str], files: Sequence[str]
) -> Iterator[Rewrite]:
    """What a sed does that edits files in place."""
    options, scripts, named, in_place = list[str](), list[str](), list[str](), False
    words = iter(rest)
    for word in words:
        short = _OPTION.fullmatch(word)
        if word.startswith(("--in-place", "--expression=")):
            in_place |= word.startswith("--in-place")
            scripts += word.split("=", 1)[1:] if word[2] == "e" else []
        elif word.startswith("--"):
            options.append(word)
        elif short:
            options += [f"-{short[1]}"] if short[1] else []
            in_place |= short[2] is not None
            scripts += [short[4] or next(words, "")] if short[3] else []
            scripts += [UNKNOWN] if short[5] else []
        else:
            named.append(word)
    if not in_place:
        return
    if not scripts:
        scripts, named = named[:1], named[1:]
    script, problem, source = None, "", "\n".join(scripts)
    if UNKNOWN in source:
        problem = f"what sed does depends on what only a run tells: {source.replace(UNKNOWN, '?')}"
    else:
        try:
            script = parse_sed(source, options)
        except UnreadableEditError as error:
            problem = str(error)
    for file in (*named, *files):
        target = posixpath.normpath(posixpath.join(command.folder, file))
        reason = command.comment
        yield Rewrite(path, command.line, target, script=script, problem=problem, reason=reason)
