"""Texts of a manifest in a Dockerfile and in Markdown."""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Iterable, Sequence

from patchkit.errors import BadInputError, Problem
from patchkit.manifest.validate import shown
from patchkit.manifest.values import GitPin, GitSource, IndexPin, IndexSource, Pin, Source
from patchkit.model.names import Piece, filled, referred, split_references

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]*(?:@sha256:[0-9a-f]{64})?")
#: With what Markdown or HTML could begin something, inside a line and at its start.
_MARKUP = re.compile(r"([\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_LINE_MARKUP = re.compile(r"^([#+=-]|[0-9]+(?=[.)]))")
#: Hosts whose repositories have a page of their own, and one for each commit, at /commit/ID.
_PAGES = re.compile(r"https://(?:github|gitcode|gitlab|gitee)\.com/([A-Za-z0-9._/-]+)")


def image(name: str, where: str) -> str:
    """An image for FROM; raises BadInputError if it is none once the site's values are in it."""
    if not _IMAGE.fullmatch(name):
        raise BadInputError(
            Problem(
                f"image.base: {shown(name)} is not an image name",
                where,
                "like ascendai/cann:8.5.0-a3-ubuntu22.04-py3.11; look at the site's values",
            )
        )
    return name


def index(url: str, where: str) -> str:
    """A package index for ARG; BadInputError if it would be more than one word there."""
    if not re.fullmatch(r"[A-Za-z0-9:/._~%@+=?&,-]*", url):
        what = f"environment.variables.PIP_INDEX_URL: {shown(url)} is not an index URL"
        hint = "like https://mirror.example.com/simple; look at the site's values"
        raise BadInputError(Problem(what, where, hint))
    return url


def copy_words(source: str) -> str:
    """`COPY` arguments that put a path of the context at the same place in the image."""
    escaped = re.sub(r"([\\$])", r"\\\1", source)
    return json.dumps([escaped, escaped], ensure_ascii=False)


def markdown(text: str) -> str:
    """A text as Markdown that shows just it, on one line, also in a table's cell."""
    line = _LINE_MARKUP.sub(r"\\\1", _MARKUP.sub(r"\\\1", _one_line(text)))
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def code(text: str) -> str:
    """A text as a Markdown code span, also in a table's cell."""
    line = _one_line(text)
    if "`" in line or "|" in line or "<!--" in line or "-->" in line:
        return markdown(line)
    return f"`{line}`"


def html_comment(text: str) -> str:
    """A text inside an HTML comment."""
    return _one_line(text).replace("-->", "-- >").replace("--!>", "-- !>")


def pin_cell(pin: Pin, source: Source) -> str:
    """What is taken, with a link to the commit where its host has a page for it."""
    match pin:
        case GitPin():
            page = _page(source)
            label = code(pin.commit[:12])
            return f"[{label}]({page[0]}/commit/{pin.commit})" if page else code(pin.commit)
        case IndexPin():
            return code(pin.version)
        case _:
            return code(f"sha256 {pin.sha256[:12]}")


def source_cell(source: Source) -> str:
    """Where it is taken from, with a link where its host has a page for it."""
    if isinstance(source, IndexSource):
        return f"{code(source.project)} on the package index"
    page = _page(source)
    return f"[{markdown(page[1])}]({page[0]})" if page else code(source.url)


def _page(source: Source) -> tuple[str, str] | None:
    """A repository's page and its name there."""
    if not isinstance(source, GitSource):
        return None
    found = _PAGES.fullmatch(source.url.removesuffix(".git"))
    return (found[0], found[1]) if found else None


def _one_line(text: str) -> str:
    return one_line(" ".join(text.split()))


# Texts of a manifest as words, comments and steps of a bash script.
#
# Nothing that a manifest or a site says can end a word: a plain text is quoted, a text with site
# values becomes one double-quoted word in which only `$name` means anything. The exceptions are
# the commands that are shell text by nature.


#: Characters that mean something between double quotes.
_ACTIVE = re.compile(r'([\\"$`])')


def quote(text: str) -> str:
    """A text as one shell word, in quotes only where it needs them.

    In double quotes if it has a `$` or a backquote: a reader (and shellcheck) would ask of single
    quotes whether it was to be expanded.
    """
    if "$" in text or "`" in text:
        return '"' + _ACTIVE.sub(r"\\\1", text) + '"'
    return shlex.quote(text)


def word(text: str) -> str:
    """A text with references as one shell word; references are shell variables of that name."""
    if not referred(text):
        return quote(filled(text, {}))
    return f'"{_between_quotes(split_references(text))}"'


def _between_quotes(pieces: Sequence[Piece]) -> str:
    return "".join(
        _ACTIVE.sub(r"\\\1", piece) if isinstance(piece, str) else f"${{{piece.name}}}"
        for piece in pieces
    )


def comment(text: str, width: int = 88) -> str:
    """A text as comment lines: every line begins with #, whatever is in it."""
    lines: list[str] = []
    for line in text.strip().split("\n"):
        lines += textwrap.wrap(
            one_line(line), width, break_long_words=False, break_on_hyphens=False
        ) or [""]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def one_line(text: str) -> str:
    """A text on one line, whatever was in it."""
    return "".join(char if char.isprintable() else " " for char in text)


def short(text: str) -> str:
    """A step's name or commands as a short title."""
    line, _, more = text.strip().partition("\n")
    return one_line(line if len(line) <= 72 and not more else line[:69].rstrip() + "...")


def step_body(run: str) -> str:
    """A step's commands for a block that is indented by four columns.

    What a shift to the right could change (a here-document, a quote over several lines) stays where
    it is.
    """
    lines = run.strip("\n").split("\n")
    if len(lines) > 1 and ("<<" in run or any(_is_open(line) for line in lines)):
        return "\n".join(lines)
    return "\n".join(f"    {line}".rstrip() for line in lines)


def _is_open(line: str) -> bool:
    return line.count("'") % 2 == 1 or line.count('"') % 2 == 1


def used_in(run: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of `names` that a shell text uses as variables."""
    return tuple(
        name for name in names if re.search(rf"\$(?:{name}(?![A-Za-z0-9_])|\{{{name}\b)", run)
    )


def argument(value: str | Sequence[str], name: str) -> str:
    """One argument of a launch: `--name value`, `--name` alone, or `name=value`."""
    if not name.startswith("-"):
        assert isinstance(value, str), "the manifest's rules refuse a list here"
        return word(f"{name}={value}")
    values = (value,) if isinstance(value, str) else value
    return " ".join((quote(name), *(word(text) for text in values if text != "")))


def in_workspace(checkout: str, directory: str) -> str:
    """A folder of a checkout as a shell word; no checkout: the workspace itself."""
    parts = "".join(f"/{part}" for part in (checkout, directory) if part)
    return '"$workspace' + _ACTIVE.sub(r"\\\1", parts) + '"'


def prepended(folders: Sequence[str], variable: str) -> str:
    """Folders before what a path-like variable has, if it has anything."""
    inner = _between_quotes(split_references(":".join(folders)))
    return f'"{inner}${{{variable}:+:${variable}}}"'
