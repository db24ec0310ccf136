"""Pins that stand where other tools read them: in a Dockerfile, a Makefile, DEPS, as a submodule.

A form leads from a name to the characters of the value. These are read, and replaced by `bump`:
nothing else of a file changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import regex
from msgspec import Struct, ValidationError
from msgspec.structs import replace

from patchkit.disk.files import read_plain
from patchkit.errors import BadInputError, Problem
from patchkit.gitcmd.gitlinks import staged_gitlink
from patchkit.manifest.types import Complaint, check_commit, check_track, first_complaint
from patchkit.manifest.validate import shown
from patchkit.manifest.values import (
    Component,
    FilePin,
    FilePlace,
    GitPin,
    Location,
    Manifest,
    SubmodulePin,
)
from patchkit.manifest.yaml_nodes import (
    MAXIMUM_BYTES,
    Items,
    Node,
    Reading,
    Scalar,
    parse,
    reading_of,
)
from patchkit.model.decoding import from_builtins
from patchkit.model.names import COMMIT_ID
from patchkit.model.objects import CommitId
from patchkit.model.text import listed

# Each form is a regular expression with NAME in it; what its group `value` matches is the pin. What
# refers to another value (`$X`) is none.
_FORMS = {
    "arg": r"""^[ \t]*(?i:ARG|ENV)[ \t](?:[^\n\\]|\\\r?\n|\\.)*?(?<=[ \t])NAME(?:=|[ \t]+)"""
    r"""["']?(?P<value>[^\s"'\\=$][^\s"'\\=]*)(?=["'\s]|\Z)""",
    "variable": r"""^[ \t]*(?:\{%-?[ \t]*set[ \t]+|(?:(?:export|override|readonly|local|declare)"""
    r"""[ \t]+)*["']?)NAME["']?[ \t]*(?:(?::{0,3}|[?!])=|:(?=[ \t]))[ \t]*["']?"""
    r"""(?P<value>[^\s"'$#,;{]+)(?=["'\s,;}]|\Z)""",
    "cmake": r"""^[ \t]*(?:(?i:set)\s*\(\s*NAME\s"""
    r"""|(?i:FetchContent_Declare|ExternalProject_Add)\s*\(\s*NAME\s(?:[^()#]|#.*\n)*?\bGIT_TAG\s"""
    r"""|vcpkg_from_\w+\s*\((?:[^()#]|#.*\n)*?\bOUT_SOURCE_PATH\s+NAME\s(?:[^()#]|#.*\n)*?"""
    r"""\bREF\s)"""
    r"""\s*"?(?P<value>[^\s"$()#]+)(?=["\s)]|\Z)""",
    "deps": r"""["']NAME["']\s*:\s*(?:\{\s*["']url["']\s*:\s*)?"""
    r"""(?:(?:Var\([^()\n]*\)|["'][^"'\n]*["'])\s*\+\s*)*"""
    r"""["'](?:[^"'\n]*@)?(?P<value>[A-Za-z0-9][^"'@:\s]*)["'](?!\s*\+)""",
}
_ONLY_LINE = r"\A\s*(?P<value>\S+)\s*\Z"
_ANY_NAME = r"(?P<name>[^\s\"'=:()#]+)"

#: Seconds that to look for a pattern may take.
PATIENCE = 5.0


class Spot(Struct, frozen=True):
    """The characters of a value: `text[start:end]` of a file."""

    text: str
    start: int
    end: int
    bare: bool = False  # in YAML, without quotes

    @property
    def value(self) -> str:
        """What stands there."""
        return self.text[self.start : self.end]

    @property
    def line(self) -> int:
        """The line, from 1."""
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """The place in the line, from 1."""
        return self.start - self.text.rfind("\n", 0, self.start)

    def with_value(self, value: str, data: bytes) -> bytes:
        """The file, whose bytes are `data`, with another value there."""
        quoted = self.bare and reading_of(value) is not Reading.TEXT
        value = f'"{value}"' if quoted else value
        text = self.text[: self.start] + value + self.text[self.end :]
        mark = data[: len(data) - len(self.text.encode())]
        return mark + text.encode()


def find_spot(place: FilePlace, data: bytes) -> Spot:
    """Where a place's value stands in its file; BadInputError unless it is there exactly once."""
    where = str(place.where)
    forms = [key for key in (*_FORMS, "key", "pattern") if getattr(place, key)]
    if len(forms) > 1:
        what = f"{place.file} is looked at by {' and '.join(forms)}"
        raise BadInputError(Problem(what, where, "name the place by one of them"))
    try:
        text = data.decode("utf-8-sig")  # a byte order mark is no character of the first line
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInputError(Problem("not UTF-8", f"{place.file}:{line}")) from error
    form = forms[0] if forms else ""
    name = getattr(place, form) if form else ""
    try:
        spots = _found_by_keys(text, place) if form == "key" else _found(text, form, name)
    except TimeoutError:
        what = f"the pattern takes more than {PATIENCE:.0f} seconds in {place.file}"
        raise BadInputError(Problem(what, where, "let nothing repeat that repeats")) from None
    if len(spots) == 1:
        return spots[0]
    said = f"{form} {name}" if form else "line of one word"
    if spots:
        lines = ", ".join(str(each.line) for each in spots)
        hint = "`pattern:` with more of the line around its group tells them apart"
        raise BadInputError(
            Problem(f"{said} is there {len(spots)} times", f"{place.file}:{lines}", hint)
        )
    raise BadInputError(Problem(f"{place.file} has no {said}", where, _what_is_there(text, form)))


def _found(text: str, form: str, name: str) -> list[Spot]:
    expression = _FORMS.get(form, _ONLY_LINE).replace("NAME", regex.escape(name))
    if form == "pattern":
        expression = name
    matches = regex.finditer(expression, text, regex.MULTILINE, timeout=PATIENCE)
    # of a group that takes part in no match the span is before the text
    return [Spot(text, *each.span(1)) for each in matches if each.start(1) >= 0]


def _found_by_keys(text: str, place: FilePlace) -> list[Spot]:
    # tabs set JSON in, and YAML takes none
    root = parse(text.replace("\t", " "), Path(place.file))
    spots = []
    for node in _at_keys(root, place.key):
        quote = 1 if node.style in ("'", '"') else 0
        spot = Spot(text, node.start + quote, node.end - quote, bare=not quote)
        if node.style in ("|", ">") or spot.value != node.text:
            what = f"{place.key} is not written as one word"
            raise BadInputError(Problem(what, f"{place.file}:{spot.line}"))
        spots.append(spot)
    return spots


def _at_keys(node: Node, keys: str) -> Iterator[Scalar]:
    """The value that keys with dots between lead to: a key may have dots of its own."""
    if isinstance(node, Scalar):
        return
    pairs = enumerate(node.items) if isinstance(node, Items) else node.entries
    for key, value in pairs:
        word = key.text if isinstance(key, Scalar) else str(key)
        if word == keys and isinstance(value, Scalar):
            yield value
        elif keys.startswith(f"{word}."):
            yield from _at_keys(value, keys[len(word) + 1 :])


def _what_is_there(text: str, form: str) -> str:
    if form not in _FORMS:
        return "other forms: arg, variable, cmake, deps, key, pattern"
    names = dict.fromkeys(found.name for found in named_values(text, (form,)))
    if names:
        return f"it has {form} {listed([*names], 12)}"
    return f"it has nothing of that form; others: {', '.join((*_FORMS, 'key', 'pattern'))}"


class NamedValue(Struct, frozen=True):
    """A value in a text, and the form and name by which a place leads to it."""

    form: str
    name: str
    value: str
    line: int  # from 1


def named_values(text: str, forms: Iterable[str]) -> Iterator[NamedValue]:
    """The values that some forms lead to, as far as they are found in time."""
    with suppress(TimeoutError):
        for form in forms:
            expression = _FORMS[form].replace("NAME", _ANY_NAME, 1).replace("NAME", r"(?P>name)")
            for match in regex.finditer(expression, text, regex.MULTILINE, timeout=PATIENCE):
                line = text.count("\n", 0, match.start("value")) + 1
                for name in match.captures("name"):
                    yield NamedValue(form, name, match["value"], line)


# What the places of a manifest say.


class PinsRead(Struct):
    """The components with what their places say, `files` read for it, and what is wrong.

    `nameless` are those whose place has a name that the lock does not know yet.
    """

    components: list[Component] = []
    files: dict[Path, bytes] = {}
    problems: list[Problem] = []
    nameless: list[Component] = []


def read_pins(manifest: Manifest) -> PinsRead:
    """Read what other tools' files say of the pins."""
    read = PinsRead()
    for component in manifest.components:
        pin, placed = component.pin, component
        if isinstance(pin, FilePin | SubmodulePin):
            try:
                placed = _placed(manifest, component, pin, read)
            except BadInputError as error:
                read.problems += error.problems
        read.components.append(placed)
    return read


def _placed(
    manifest: Manifest, component: Component, pin: FilePin | SubmodulePin, read: PinsRead
) -> Component:
    """The component at the commit that its place says."""
    also = [_look(manifest, each, read) for each in pin.also]
    if isinstance(pin, FilePin):
        said = _look(manifest, pin, read)
        where = said.where
        pin = replace(pin, name=said.name, where=where)
    else:
        where = pin.where
        pin = replace(pin, name=staged_gitlink(manifest.root, pin.submodule))
        if not pin.name:
            what = f"{pin.submodule} is no submodule in git's index, or a merge of it waits"
            hint = "`git submodule status` lists them; a new one is there after `git add`"
            raise BadInputError(Problem(what, str(where), hint))
    for each in also:
        if each.name != pin.name:
            what = f"{component.name} is at {shown(each.name)} here, at {shown(pin.name)} elsewhere"
            raise BadInputError(
                Problem(
                    what,
                    each.where.below(manifest.root),
                    f"{where.below(manifest.root)} says so; let both agree",
                )
            )
    here = where.below(manifest.root)
    if complaint := _no_pin(pin.name):
        raise BadInputError(Problem(f"{shown(pin.name)} {complaint.what}", here, complaint.hint))
    name, commit = pin.name, CommitId(pin.name)
    if COMMIT_ID.fullmatch(name):
        name = ""
    else:
        path = manifest.lock_path
        commit = locked_names(path, read).get(component.name, {}).get(name, CommitId(""))
    pin = replace(pin, name=name, commit=commit, also=tuple(also))
    component = replace(component, pin=pin, pin_where=where)
    if not commit:
        hint = (
            f"patchkit fetch {manifest.options(component.name)}  asks the upstream for its commit"
        )
        read.nameless.append(component)
        read.problems.append(Problem(f"the lock has no commit for {name}", here, hint))
    return component


def _look(manifest: Manifest, place: FilePlace, read: PinsRead) -> FilePlace:
    """A place with what it says as its name, and where that stands."""
    path = manifest.root / place.file
    if path not in read.files:
        read.files[path] = read_place(manifest.root, place)
    spot = find_spot(place, read.files[path])
    where = Location(path, spot.line, spot.column)
    return replace(place, name=place.names(spot.value), where=where)


def read_place(root: Path, place: FilePlace) -> bytes:
    """The bytes of a place's file, which is below the project's folder."""
    try:
        return read_plain(root / place.file, most=MAXIMUM_BYTES, inside=root)
    except OSError as error:
        what = f"{place.file} cannot be read: {error.strerror}"
        raise BadInputError(Problem(what, str(place.where))) from error


def _no_pin(text: str) -> Complaint | None:
    """What is wrong with what stands in a pin's place: neither a commit id nor a name."""
    if regex.fullmatch("(?i)[0-9a-f]{40,}", text):
        return check_commit(text)
    what, hint = "is no commit id and no tag", "a pin is one of them; never a pattern"
    return check_track(text) or first_complaint(text, (r"[*?\[$]", what, hint))


class _LockedNames(Struct, frozen=True):
    """What a lock says of names; all else of it is read by others."""

    names: Mapping[str, Mapping[str, CommitId]] = {}  # component -> name -> commit


def locked_names(path: Path, read: PinsRead) -> Mapping[str, Mapping[str, CommitId]]:
    """The commits of names that the lock holds, by component; none where it cannot be read."""
    try:
        data = read_plain(path)
        names = from_builtins(json.loads(data), _LockedNames).names
    except (OSError, ValueError, RecursionError, ValidationError):
        return {}
    read.files[path] = data
    return names


# To write another pin in the place of one.


def with_pin(
    root: Path, old: FilePin | SubmodulePin, new: GitPin
) -> dict[Path, tuple[bytes, bytes]]:
    """The files of a pin's places, before and after: only the characters of the value change.

    BadInputError where they say something else by now, or the new value cannot stand there.
    """
    changed = Problem("the pin has just been changed", str(old.where), "run it again")
    if isinstance(old, SubmodulePin) and staged_gitlink(root, old.submodule) != old.commit:
        raise BadInputError(changed)
    places = (old, *old.also) if isinstance(old, FilePin) else old.also
    files: dict[Path, tuple[bytes, bytes]] = {}
    name = new.name or new.commit
    for place in places:
        before, _, behind = place.tag.partition("*")
        value = name.removeprefix(before).removesuffix(behind)
        if place.names(value) != name:
            what = f"{name} is no tag of the form {place.tag}, as that place has them"
            raise BadInputError(Problem(what, str(place.where)))
        path = root / place.file
        first, now = files.get(path) or (read_place(root, place),) * 2
        spot = find_spot(place, now)
        if place.names(spot.value) != (old.name or old.commit):
            raise BadInputError(changed)
        after = spot.with_value(value, now)
        if find_spot(place, after).value != value:
            raise BadInputError(Problem(f"{value} cannot be written there", str(place.where)))
        files[path] = first, after
    return files
