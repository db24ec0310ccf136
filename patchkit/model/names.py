"""Names that end up as files, folders, refs and shell words, paths that a patch may name, and site
values: what they may look like.

A name is ASCII, starts with a letter or digit, and has no character that a shell, git or a
case-insensitive file system treats specially. Patch names end in `.patch`; a series of other
people's may list files of any ending.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from patchkit.errors import UsageError
from patchkit.model.objects import SYMLINK_MODE, encode_path

#: What tells the pins of a component apart: `sglang@v0.5.9` is `sglang` at one.
PIN_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9._+-]{0,62}[A-Za-z0-9])?"
COMPONENT_NAME = re.compile(rf"[a-z0-9](?:[a-z0-9._-]{{0,62}}[a-z0-9])?(?:@{PIN_LABEL})?")
# `git format-patch` cuts a long subject anywhere, so that a name may end in a dash or a dot
PATCH_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+~,=@%-]{0,119}\.patch")
#: What is mended in a damaged patch (`model/repair.py`).
MEND = re.compile(
    r"line ends|entities|non-breaking spaces|indentation|last newline|(?:all )?context spaces"
    r"|counts of line [1-9][0-9]{0,5}"
)
RECIPE_ENDING = ".recipe.yml"
#: The ending of a file that remembers how a conflict was resolved.
RESOLUTION_ENDING = ".resolution"
#: How names of Python's files end.
PYTHON = (".py", ".pyi")
COMMIT_ID = re.compile(r"[0-9a-f]{40}")
_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

#: Device names that Windows reserves: a series must be checked out there, too.
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_LISTED_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+~,=@%:-]*")


class AtLine:
    """What stands at `line` of the file `path`."""

    __slots__ = ()

    path: str
    line: int

    @property
    def place(self) -> str:
        """For messages: path:line."""
        return f"{self.path}:{self.line}"


def pick_patch(word: str, names: Sequence[str]) -> str:
    """The patch of a series that `word` means: a file name with or without its ending, a number
    from 1 on, or the start of one name only.

    Raises UsageError with what may be meant.
    """
    if word in names or f"{word}.patch" in names:
        return word if word in names else f"{word}.patch"
    if word.isascii() and word.isdigit() and 1 <= int(word) <= len(names):
        return names[int(word) - 1]
    base = word.rpartition("/")[2]  # a path from a shell's completion
    fitting = (
        [base] if base in names else [name for name in names if base and name.startswith(base)]
    )
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(f"{word}: several patches start with it", hint=", ".join(fitting))
    from difflib import get_close_matches  # noqa: PLC0415 (only where something is wrong)

    stems = {name.removesuffix(".patch"): name for name in names}
    close = [stems[each] for each in get_close_matches(base.removesuffix(".patch"), stems, n=2)]
    have = ", ".join(f"{number} {name}" for number, name in enumerate(names, 1)) or "no patch"
    hint = f"did you mean {' or '.join(close)}?" if close else f"the series has {have}"
    raise UsageError(f"{word}: no such patch in the series", hint=hint)


def is_component_name(text: str) -> bool:
    """Whether `text` can name a component (and so a checkout folder and a ref)."""
    return bool(COMPONENT_NAME.fullmatch(text)) and (
        ".." not in text and not text.endswith(".lock") and not _RESERVED.fullmatch(text)
    )


def is_patch_name(text: str) -> bool:
    """Whether `text` can name a patch file in a series."""
    return bool(PATCH_NAME.fullmatch(text)) and not _RESERVED.fullmatch(text)


def is_listed_name(text: str) -> bool:
    """Whether a series may list `text`: a file of any ending in its folder or below that.

    Such names are other people's, as in debian/patches; the ones that we give are patch names.
    """
    parts = text.split("/")
    return all(_LISTED_PART.fullmatch(part) and not _RESERVED.fullmatch(part) for part in parts)


def broken_name_rule(text: str) -> str:
    """The rule that keeps `text` from being the name of a patch, as a hint."""
    parts = text.split("/")
    if any(map(_RESERVED.fullmatch, parts)):
        return "Windows keeps this name for a device: choose another one"
    if all(map(_LISTED_PART.fullmatch, parts)):
        return "at most 120 characters and .patch, without a colon"
    return "ASCII letters, digits and . _ + ~ , = @ % -, the first a letter, a digit or _"


def short_id(pin: str) -> str:
    """The id of a commit, blob or archive as messages show it; any other pin stays whole."""
    kind, mark, digits = pin.rpartition(":")
    return f"{kind}{mark}{digits[:10]}" if _ID.fullmatch(digits) else pin


def slug(text: str) -> str:
    """A patch name without its ending for a subject line; "patch" if nothing usable is left."""
    text = re.sub(r"^(?:\[[^\]]*\]\s*)+", "", text)
    words = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower()
    words = words[:52].rstrip("-")
    return words if words and not _RESERVED.fullmatch(words) else f"patch-{words}".rstrip("-")


def new_name(subject: str, used: Collection[str]) -> str:
    """A patch name for a subject that is not in `used` (names in lower case)."""
    stem = slug(subject)
    name, count = f"{stem}.patch", 1
    while name.casefold() in used:
        count += 1
        name = f"{stem}-{count}.patch"
    return name


def recipe_name(patch: str) -> str:
    """What the recipe of a patch is called: `fix-rope.recipe.yml` makes `fix-rope.patch`."""
    return patch.removesuffix(".patch") + RECIPE_ENDING


# Paths: a patch must name none that leaves the tree or enters git's own folder. The rules are those
# of git's index (`verify_path`), with core.protectNTFS and core.protectHFS on everywhere: a stack
# that can be applied on one machine can be on every other.


# Nearly all paths, told at one glance: no dot at the start of a name, no "~", no odd character.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")
# HFS+ ignores these in names: ".g\u200cit" opens ".git".
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
# NTFS drops dots and blanks at the end of a name, has short names, and streams after a colon.
_GIT_ON_NTFS = re.compile(r"(?:\.git|git~1)[ .]*(?::.*)?", re.IGNORECASE | re.DOTALL)
_GITMODULES_ON_NTFS = re.compile(
    r"(?:\.gitmodules|gitmod~[1-4]|gi7eba~[1-9]|gi7eb~[1-9][0-9]|gi7e~[1-9][0-9]{2}"
    r"|gi7~[1-9][0-9]{3}|gi~[1-9][0-9]{4}|g~[1-9][0-9]{5})[ .]*(?::.*)?",
    re.IGNORECASE | re.DOTALL,
)


_LONGEST_NAME = 255  # bytes, on all file systems that we know
_LONGEST_PATH = 3000  # bytes, of the 4096 that Linux takes: a workspace's own path is before it
#: So many folders may lie in each other: no path of more fits a system call, nor our recursion.
DEEPEST = 500


def unsafe_path(path: str, mode: int | None = None) -> str | None:
    """Why `path` must not be written, None if it may be; `mode` is what would be put there."""
    if path.count("/") > DEEPEST:
        return f"path of more than {DEEPEST} folders"
    size = len(encode_path(path))
    if size <= _LONGEST_NAME and _PLAIN.fullmatch(path):
        return None
    if size > _LONGEST_PATH:
        return f"path of more than {_LONGEST_PATH} bytes"
    if path.startswith("/"):
        return "absolute path"
    if "\x00" in path:
        return "path with a NUL byte"
    faults = (_unsafe_name(part, mode) for part in path.split("/"))
    return next((fault for fault in faults if fault is not None), None)


def can_be_a_file(path: str) -> bool:
    """Whether a path that a record names leads to a place below, by names that a file can have.

    As from a file system: bytes that are no UTF-8 are surrogates.
    """
    try:
        return unsafe_path(path) is None
    except UnicodeEncodeError:
        return False


def _unsafe_name(part: str, mode: int | None) -> str | None:
    """Why one name in a path must not be written, None if it may be."""
    if part in ("", "."):
        return "path with an empty or '.' component"
    if part == "..":
        return "path that leaves the tree"
    if len(encode_path(part)) > _LONGEST_NAME:
        return f"name of more than {_LONGEST_NAME} bytes"
    # a backslash separates folders on Windows
    pieces = [_IGNORED_BY_HFS.sub("", piece) for piece in part.split("\\")]
    if any(_GIT_ON_NTFS.fullmatch(piece) for piece in pieces):
        return "path inside a .git folder"
    if mode == SYMLINK_MODE and any(_GITMODULES_ON_NTFS.fullmatch(piece) for piece in pieces):
        return "symlink in the place of .gitmodules"
    return None


# `${name}` in a text of the manifest: a site value; all the rest of the text is itself.
#
# `$${` stands for `${`. A `$` without a brace is an ordinary character.


#: Values that no manifest needs to declare.
ALWAYS_THERE = ("workspace",)

VALUE_NAME = re.compile("[a-z][a-z0-9_]*")
_TOKEN = re.compile(r"\$\$\{|\$\{(?P<name>[^{}]*)\}?")


class Reference(Struct, frozen=True):
    """A place where a site value goes."""

    name: str  # of the site value


Piece: TypeAlias = str | Reference


def split_references(text: str) -> tuple[Piece, ...]:
    """Literal texts and references in turn, none of the texts empty.

    A reference that is malformed (`${}`, `${A}`, an open `${a`) comes with what is there as its
    name, which is then the name of no value.
    """
    pieces: list[Piece] = []
    literal, end = "", 0
    for token in _TOKEN.finditer(text):
        literal += text[end : token.start()]
        end = token.end()
        if token["name"] is None:
            literal += "${"
            continue
        if literal:
            pieces.append(literal)
        literal = ""
        closed = token.group().endswith("}")
        pieces.append(Reference(token["name"] if closed else token["name"] + " (open)"))
    literal += text[end:]
    return (*pieces, literal) if literal else tuple(pieces)


def referred(text: str) -> tuple[str, ...]:
    """The names in a text, in order."""
    return tuple(each.name for each in split_references(text) if isinstance(each, Reference))


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with the values in their places."""
    return "".join(
        values[each.name] if isinstance(each, Reference) else each
        for each in split_references(text)
    )


# URLs of upstreams: when two spellings mean one, what may be shown, what to call its folder.
#
# Which URLs are taken at all is the manifest's business (`manifest/types.py`).


_SCP = re.compile(r"(?:[A-Za-z0-9._~-]+@)?(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*):(?P<path>[^:].*)")
_PORTS = {"https": 443, "http": 80, "ssh": 22, "git": 9418}


def normal_url(url: str) -> str:
    """Host and path, the same for every spelling of one repository; no scheme, no credentials."""
    scp = _SCP.fullmatch(url) if "://" not in url else None
    if scp:
        host, path = scp["host"], scp["path"]
    else:
        parts = urlsplit(url)
        path = parts.path
        host = parts.netloc.rpartition("@")[2].removesuffix(f":{_PORTS.get(parts.scheme)}")
    path = re.sub(r"/+", "/", path).strip("/").removesuffix(".git").rstrip("/")
    return f"{host.lower() or 'file:'}/{path}"


def readable_url(url: str) -> str:
    """The URL without user and password."""
    return re.sub(r"(?<=://)[^/@]*@", "", url)


def folder_name(key: str) -> str:
    """A folder name for `key`: the readable end of it and 12 digits of its hash."""
    words = re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")
    return f"{words[-48:].lstrip('-')}-{sha256(key.encode()).hexdigest()[:12]}"
