"""Change single places of a manifest's text; every other byte stays as the user wrote it.

Bytes in, bytes out: byte order mark, line ends, comments, quotes and order are kept. Places are
YAML's own marks, edits are made from the end backwards so that earlier marks stay right, and the
result is read again before it is returned: an edit that cannot be made is refused, not guessed.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.manifest.keys import as_data
from patchkit.manifest.values import Pin
from patchkit.manifest.write import flow_mapping
from patchkit.manifest.yaml_nodes import (
    Items,
    Node,
    Reading,
    Scalar,
    Table,
    decode,
    parse,
    reading_of,
)

_BOM = b"\xef\xbb\xbf"


class TextEdit(Struct, frozen=True):
    """Characters `start:end` of a text are to be replaced by `text`."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """The text with all edits made; they must not overlap."""
    for edit in sorted(edits, key=lambda each: (each.start, each.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def set_pin(
    data: bytes, component: str, pin: Pin, *, file: Path, tags: Sequence[str] = ("", "")
) -> bytes:
    """The manifest with another pin for `component`: exactly the pin's characters change.

    With `tags`, what the old and the new pin are called, a comment beside it that says the old one
    says the new one, or goes where that is "". Any other comment is left alone.
    `file` is for messages. Raises BadInputError where the pin does not stand in this file (it may
    be inherited: `Component.pin_where` tells where) or is of another kind.
    """
    parts = as_data(pin)
    texts = parts if isinstance(parts, dict) else {"": parts}
    places = [f"pin.{key}".removesuffix(".") for key in texts]
    data = _with_texts(data, component, places, [*map(str, texts.values())], file)
    old, new = tags
    if not old:
        return data
    text = decode(data, file)
    end = _scalars(text, component, places, file)[0].end
    comment = re.compile(rf"([ \t]+#[ \t]*){re.escape(old)}(?=[ \t]*(?:\r?\n|\Z))").match(text, end)
    if comment is None:
        return data
    edit = TextEdit(comment.end(1), comment.end(), new) if new else TextEdit(*comment.span(), "")
    return _encode(data, apply_edits(text, [edit]), file)


#: Where the URLs of an archive stand.
_URLS = ("source.archive", "source.mirrors.*")


def archive_urls(data: bytes, component: str, *, file: Path) -> tuple[str, ...]:
    """The URLs of an archive as the manifest writes them: its own, then the mirrors'.

    Raises BadInputError where the source does not stand in this file.
    """
    return tuple(each.text for each in _scalars(decode(data, file), component, _URLS, file))


def set_archive(data: bytes, component: str, urls: Sequence[str], *, file: Path) -> bytes:
    """The manifest with other URLs of an archive, in the order of `archive_urls`.

    Raises BadInputError where the source does not stand in this file, or a URL needs quotes there.
    """
    return _with_texts(data, component, _URLS, urls, file)


def _with_texts(
    data: bytes, component: str, paths: Sequence[str], texts: Sequence[str], file: Path
) -> bytes:
    """The manifest with other texts at paths of a component's keys."""
    text = decode(data, file)
    scalars = _scalars(text, component, paths, file, len(texts))
    text = apply_edits(text, map(_replaced, scalars, texts))
    try:
        written = [scalar.text for scalar in _scalars(text, component, paths, file)]
    except BadInputError:
        written = []
    if written != [*texts]:
        what = f"{' '.join(texts)} cannot be written there as it is"
        hint = "put what is there into quotes"
        raise BadInputError(Problem(what, str(scalars[0].where), hint))
    return _encode(data, text, file)


def _scalars(
    text: str, component: str, paths: Sequence[str], file: Path, least: int = 1
) -> list[Scalar]:
    """What stands at paths of a component's keys; BadInputError if that is not in this file."""
    table = _component(parse(text, file), component, file)
    scalars = [node for path in paths for node in table.at(path) if isinstance(node, Scalar)]
    key = paths[0].partition(".")[0]
    node = table.get(key)
    if node is None:
        raise _not_here(f"the {key} of {component}", file)
    if len(scalars) < least:
        raise BadInputError(
            Problem(f"the {key} of {component} is of another kind", str(node.where))
        )
    return scalars


def add_component(data: bytes, lines: str, *, file: Path, family: str = "") -> bytes:
    """The manifest with a further component at the end of its own, or pin at the end of those of a
    component; `lines` are not set in.

    Raises BadInputError where these are written in braces, or the pins are not in this file.
    """
    text = decode(data, file)
    path = ("components", family, "pins") if family else ("components",)
    components = _at(parse(text, file), *path)
    if family and components is None:
        raise _not_here(f"`pins` of {family}", file)
    if not isinstance(components, Table):  # all of them are inherited
        break_before = "" if text.endswith("\n") else "\n"
        added = break_before + "components:\n" + textwrap.indent(lines, "  ")
        return _encode(data, text + _line_ends(text, added), file)
    if components.flow:
        raise _in_braces(path[-1], components)
    column = components.entries[0][0].where.column - 1
    end = last_character(text, components)
    # comments that are set in further belong to the component before
    beside = re.compile(rf"[^\n]*(?:\r?\n {{{column + 1},}}#[^\n]*)*").match(text, end)
    assert beside is not None
    edit = _insert_line(text, beside.end(), textwrap.indent(lines.rstrip("\n"), " " * column))
    return _encode(data, apply_edits(text, [edit]), file)


def add_patch(data: bytes, component: str, entry: Mapping[str, str | int], *, file: Path) -> bytes:
    """The manifest with a further patch entry at the end of a component's stack.

    `entry` has the keys of the format ({"series": "patches/a/series"}). Raises BadInputError where
    the component is not in this file, or is written in braces.
    """
    text = decode(data, file)
    table = _component(parse(text, file), component, file)
    patches = table.get("patches")
    if isinstance(patches, Items):
        edit = _appended(text, patches, flow_mapping(entry))
    elif patches is not None and not (
        isinstance(patches, Scalar) and patches.reading is Reading.NULL
    ):
        raise BadInputError(Problem(f"the patches of {component} are no list", str(patches.where)))
    elif table.flow:
        raise _in_braces(component, table)
    else:
        edit = _new_patches(text, table, flow_mapping(entry), patches)
    return _encode(data, apply_edits(text, [edit]), file)


def fold_patches(
    data: bytes, component: str, gone: Collection[int], series: str | None, *, file: Path
) -> bytes:
    """The manifest without the patch entries at the places `gone` of a component.

    With `series`, an entry for that path comes in the place of the first one. Raises BadInputError
    where the patches are not in this file.
    """
    text = decode(data, file)
    patches = _component(parse(text, file), component, file).get("patches")
    if not isinstance(patches, Items) or max(gone) >= len(patches.items):
        raise _not_here(f"the patches of {component}", file)
    entry = flow_mapping({"series": series}) if series is not None else None
    fold = _folded_flow if patches.flow else _folded_block
    return _encode(data, apply_edits(text, fold(text, patches, sorted(gone), entry)), file)


def _component(root: Node, name: str, file: Path) -> Table:
    family, _, label = name.partition("@")
    table = _at(root, "components", name) or _at(root, "components", family, "pins", label)
    if not isinstance(table, Table):
        raise _not_here(f"component {name}", file)
    return table


def _at(node: Node | None, *keys: str) -> Node | None:
    """The value that keys lead to."""
    for key in keys:
        node = node.get(key) if isinstance(node, Table) else None
    return node


def _replaced(scalar: Scalar, text: str) -> TextEdit:
    """The text in the place of the scalar's characters, within its quotes if it has some."""
    if scalar.style in ("'", '"'):
        return TextEdit(scalar.start + 1, scalar.end - 1, text)
    if scalar.style:
        raise BadInputError(
            Problem("a value in a block of text", str(scalar.where), "write it on the key's line")
        )
    # digits only must be quoted, or YAML would take the id for a number
    quoted = text if reading_of(text) is Reading.TEXT else f'"{text}"'
    return TextEdit(scalar.start, scalar.end, quoted)


def _appended(text: str, patches: Items, entry: str) -> TextEdit:
    if patches.flow:
        if not patches.items:
            return TextEdit(patches.start, patches.end, f"[{entry}]")
        last = last_character(text, patches.items[-1])
        return TextEdit(last, last, f", {entry}")
    dash = " " * (patches.where.column - 1) + "- "
    return _insert_line(text, last_character(text, patches), dash + entry)


def _folded_flow(
    text: str, patches: Items, gone: Sequence[int], entry: str | None
) -> Iterator[TextEdit]:
    items = [text[each.start : last_character(text, each)] for each in patches.items]
    if entry is not None:
        items[gone[0]], gone = entry, gone[1:]
    kept = [each for number, each in enumerate(items) if number not in gone]
    yield TextEdit(patches.start, patches.end, f"[{', '.join(kept)}]")


def _folded_block(
    text: str, patches: Items, gone: Sequence[int], entry: str | None
) -> Iterator[TextEdit]:
    for place in gone:
        item = patches.items[place]
        end = last_character(text, item)
        if entry is not None and place == gone[0]:
            yield TextEdit(item.start, end, entry)
        else:
            line = text.rfind("\n", 0, item.start) + 1
            yield TextEdit(line, text.find("\n", end) + 1 or len(text), "")


def _new_patches(text: str, table: Table, entry: str, null: Node | None) -> TextEdit:
    indent = " " * (table.entries[0][0].where.column - 1)
    if null is not None:  # it stands right behind the key
        return _insert_line(text, null.start, f"{indent}  - {entry}")
    return _insert_line(text, last_character(text, table), f"{indent}patches:\n{indent}  - {entry}")


def _insert_line(text: str, after: int, lines: str) -> TextEdit:
    """New lines below the line in which the character before `after` stands."""
    end = text.find("\n", after)
    lines = _line_ends(text, lines)
    if end == -1:
        return TextEdit(len(text), len(text), _line_ends(text, "\n") + lines)
    return TextEdit(end + 1, end + 1, lines + _line_ends(text, "\n"))


def last_character(text: str, node: Node) -> int:
    """Behind the last character that belongs to `node` (block nodes end at the next token)."""
    if isinstance(node, Scalar):
        return node.start + len(text[node.start : node.end].rstrip())
    if node.flow:
        return node.end
    last = node.items[-1] if isinstance(node, Items) else node.entries[-1][1]
    return max(last_character(text, last), node.start)


def _line_ends(text: str, lines: str) -> str:
    return lines.replace("\n", "\r\n") if "\r\n" in text else lines


def _encode(original: bytes, text: str, file: Path) -> bytes:
    data = text.encode("utf-8")
    parse(decode(data, file), file)  # still a manifest's YAML: fail here, not at the next load
    return _BOM + data if original.startswith(_BOM) else data


def _not_here(what: str, file: Path) -> BadInputError:
    hint = "it is inherited: change it in the file that sets it"
    return BadInputError(Problem(f"{what} is not in this file", f"{file}:1", hint))


def _in_braces(component: str, table: Table) -> BadInputError:
    hint = "write it as lines of `key: value`, then it can be added to"
    return BadInputError(Problem(f"{component} is written in braces", str(table.where), hint))
