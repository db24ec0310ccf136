"""Texts of a manifest in a Dockerfile and in Markdown."""

from __future__ import annotations

import json
import re

from patchkit.errors import BadInputError, Problem
from patchkit.manifest.validate import shown
from patchkit.manifest.values import GitPin, GitSource, IndexPin, IndexSource, Pin, Source

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]*(?:@sha256:[0-9a-f]{64})?")
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._/+-]+")
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
                f"image.base: {shown(name)} is no image",
                where,
                "like ascendai/cann:8.5.0-a3-ubuntu22.04-py3.11; look at the site's values",
            )
        )
    return name


def copy_words(source: str) -> str:
    """`COPY` arguments that put a path of the context at the same place in the image."""
    if _PLAIN_PATH.fullmatch(source):
        return f"{source} {source}"
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


def pin_cell(source: Source, pin: Pin) -> str:
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
    line = " ".join(text.split())
    return "".join(char if char.isprintable() else " " for char in line)
