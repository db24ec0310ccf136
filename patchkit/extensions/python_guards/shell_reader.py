"""The commands of a shell script or a Dockerfile, with as much of their words as the text says.

Followed are quotes, variables that are set once or by a loop over words, `cd`, here-documents, and
a Dockerfile's RUN, ENV, ARG and WORKDIR. What only a run would tell (`$(...)`, a variable that
nobody sets) is UNKNOWN in a word. Nothing is run.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from patchkit.extensions.python_guards.text_edits import UNKNOWN


class ShellCommand(Struct, frozen=True):
    """A command: `folder` is where it runs as far as is known, `text` what a here-document gives
    it, with the line that begins on; `before` are the words of the command whose output it reads.
    """

    words: tuple[str, ...]
    line: int  # from 1
    folder: str
    comment: str = ""  # the lines above it, without their `#`
    text: str = ""
    text_line: int = 0
    before: tuple[str, ...] = ()
    given: str = ""  # the file that it reads by `<`


#: A command whose output is put there; its brackets may be three deep.
_RUN = r"\$\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_QUOTED = rf"(?:\\.|[^\"\\$]|\$(?!\()|{_RUN})*"
_TOKEN = re.compile(
    r"(?P<blank>\\\r?\n|[ \t\r]+)"
    r"|(?P<comment>\#[^\n]*)"
    r"|(?P<here><<-?(?!<)[ \t]*(?P<quote>['\"]?)(?P<mark>\w+)(?P=quote))"
    r"|(?P<redirect>\d*(?:<<<|>>|[<>]&|<|>\|?))"
    r"|(?P<end>&&|\|\||;;|\|&|[;&|()\n])"
    rf"|(?P<word>(?:'[^']*'|\"{_QUOTED}\"|`[^`]*`|{_RUN}|\$\{{[^}}]*\}}|\\.|[^\s;&|()<>'\"\\`])+)"
    r"|(?P<stray>.)",
    re.DOTALL,
)
_PIECE = re.compile(
    r"'(?P<plain>[^']*)'"
    rf"|\"(?P<quoted>{_QUOTED})\""
    rf"|(?P<run>`[^`]*`|{_RUN})"
    r"|\$(?:\{(?P<braced>[^}]*)\}|(?P<name>\w+|[@*#?$!-]))"
    r"|\\(?P<escaped>.)"
    r"|(?P<text>[^'\"`$\\]+|.)",
    re.DOTALL,
)
#: What may stand before a command's own name.
_LEADING = frozenset(
    {"if", "then", "elif", "else", "do", "while", "until", "{", "}", "!", "time", "sudo", "exec"}
    | {"command", "env", "export", "local", "readonly", "declare"}
)
_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash"})
_SETTING = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_INSTRUCTION = re.compile(r"RUN|ENV|ARG|WORKDIR|[A-Z]{3,}")
#: A comment between the lines of one instruction, which Docker leaves out.
_INNER = re.compile(r"(?<=\\\n)[ \t]*\#[^\n]*(?=\n)")
#: So many values of a variable, and so deep shells within shells, are looked at.
_MOST, _DEEPEST = 200, 4


def shell_commands(text: str, *, is_dockerfile: bool = False) -> Iterator[ShellCommand]:
    """The commands, in the order of the text; a command in a loop over words once for each."""
    if is_dockerfile:
        text = _INNER.sub(r"\\", text)
    yield from _Shell(is_dockerfile).commands(text, 1)


class _Shell(Struct):
    is_dockerfile: bool
    variables: dict[str, tuple[str, ...]] = {}
    folder: str = ""
    home: str = ""  # where each RUN begins
    depth: int = 0

    def commands(self, text: str, line: int) -> Iterator[ShellCommand]:
        """The commands of a text that begins on that line."""
        words, first, at, piped = list[str](), line, 0, tuple[str, ...]()
        comment, begins = "", 0  # the comment above, the line of what follows
        hungry: list[tuple[str, bool]] = []  # here-documents that are to come
        redirected, given = "", ""  # a redirection that awaits its file; the file of a `<`
        while at < len(text):
            token = _TOKEN.match(text, at)
            assert token is not None
            kind, part, at = token.lastgroup, token[0], token.end()
            here, here_line = "", 0
            if token["here"] is not None:
                hungry.append((token["mark"], part.startswith("<<-")))
            elif kind == "comment":
                said = part.lstrip("#").strip()
                comment = f"{comment}\n{said}".strip() if begins == line - 1 else said
                begins = line
            elif kind == "redirect":
                redirected = part
            elif kind == "word":
                first = first if words else line
                given = part if redirected == "<" else given
                words += [] if redirected else [part]
                redirected = ""
            line += part.count("\n")
            if kind != "end":
                continue
            if part == "\n":
                for mark, tabs in hungry:
                    here, at = _document(text, at, mark, tabs=tabs)
                    here_line, line = line, line + here.count("\n") + 1
                hungry = []
            elif hungry:
                continue  # the rest of the line goes with its document
            made = list(self._made(words, first, piped, (comment, here, here_line, given)))
            yield from made
            piped = made[-1].words if made and part in ("|", "|&") else ()
            comment = comment if part == "\n" and not words else ""
            words, given = list[str](), ""
        yield from self._made(words, first, piped, (comment, "", 0, given))

    def _made(
        self, raw: Sequence[str], line: int, piped: tuple[str, ...], more: tuple[str, str, int, str]
    ) -> Iterator[ShellCommand]:
        """What a command is, once for each value of its variables; its effect on those after it."""
        words = list(raw)
        comment, text, text_line, given = more
        if self.is_dockerfile and words and _INSTRUCTION.fullmatch(words[0]):
            words = self._instruction(words)
        while words and words[0] in _LEADING:
            words = words[1:]
        while words and (setting := _SETTING.fullmatch(words[0])):
            self.variables[setting[1]] = self._values(setting[2])
            words = words[1:]
        if words[:1] == ["for"] and words[2:3] == ["in"]:
            values = [value for each in words[3:] for value in self._values(each)]
            self.variables[words[1]] = tuple(values[:_MOST])
        elif text and (not words or words[0] in _SHELLS) and self.depth < _DEEPEST:
            self.depth += 1
            yield from self.commands(text, text_line)
            self.depth -= 1
        elif words:
            for number in range(self._variants(words)):
                known = tuple(self._word(each, number) for each in words)
                if known[0] == "cd" and len(known) > 1:
                    self.folder = posixpath.normpath(posixpath.join(self.folder, known[1]))
                yield ShellCommand(
                    known, line, self.folder, comment, text, text_line, piped, self._word(given, 0)
                )

    def _instruction(self, words: list[str]) -> list[str]:
        """A Dockerfile's instruction as the shell has it; nothing of one that runs nothing."""
        name, rest = words[0], words[1:]
        match name:
            case "RUN":
                self.folder = self.home
                while rest and rest[0].startswith("--"):
                    rest = rest[1:]
                return rest
            case "WORKDIR" if rest:
                self.home = posixpath.join(self.home, self._word(rest[0], 0))
            case "ENV" if len(rest) > 1 and "=" not in rest[0]:
                self.variables[rest[0]] = self._values(rest[1])
            case "ENV" | "ARG":
                for setting in filter(None, map(_SETTING.fullmatch, rest)):
                    self.variables[setting[1]] = self._values(setting[2])
        return []

    def _variants(self, words: Sequence[str]) -> int:
        names = {each for word in words for each in re.findall(r"\$\{?(\w+)", word)}
        return max((len(self.variables.get(name, ())) for name in names), default=1) or 1

    def _values(self, word: str) -> tuple[str, ...]:
        return tuple(self._word(word, number) for number in range(self._variants([word])))

    def _word(self, raw: str, number: int) -> str:
        """What a word comes to, with the value of that number of each variable."""
        return "".join(self._piece(each, number) for each in _PIECE.finditer(raw))[:1_000_000]

    def _piece(self, piece: re.Match[str], number: int) -> str:
        match piece.lastgroup:
            case "quoted":
                inner = re.sub(r"\\(?=[^$`\"\\\n])", r"\\\\", piece["quoted"])
                return self._word(inner.replace("\\\n", "").replace("'", "\\'"), number)
            case "run":
                return UNKNOWN
            case "braced" | "name":
                values = self.variables.get(piece["braced"] or piece["name"])
                return values[min(number, len(values) - 1)] if values else UNKNOWN
            case "escaped" if piece["escaped"] == "\n":
                return ""
        return str(piece[piece.lastgroup or 0])


def _document(text: str, at: int, mark: str, *, tabs: bool) -> tuple[str, int]:
    """A here-document's text, and where the text goes on behind it."""
    blanks = r"\t*" if tabs else ""
    end = re.compile(rf"^{blanks}{mark}$\n?", re.MULTILINE).search(text, at)
    if end is None:
        return text[at:], len(text)
    return text[at : end.start()], end.end()
