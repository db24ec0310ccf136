"""The vocabulary in which the formats of files are declared, and what single values may look like.

A key of a file is a field of a Struct (see values.py), and its annotation says all about it:

    packages: Annotated[tuple[Package, ...], "What the key means.", also("package", "modules")]

The text is for the reference and the JSON Schema, `also` has words that people try instead, `Key`
says how the key is spelled if not as the field, and what its default is called. A field without
such a text is no key: `where` is the place of the value, `name` its key in a mapping by names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import Struct

from patchkit.errors import Problem
from patchkit.model.names import (
    COMPONENT_NAME,
    PATCH_NAME,
    broken_name_rule,
    is_component_name,
    is_patch_name,
)
from patchkit.model.objects import CommitId


class Complaint(Struct, frozen=True):
    """What is wrong with a value, to be read after its name: "is a short commit id"."""

    what: str
    hint: str  # what to write instead; "" for none


class Text(Struct, frozen=True):
    """A text; `what` it is called in messages ("a full commit id").

    `check` says what is wrong with a text, better than "is not WHAT"; `pattern`, which JSON Schema
    can express too, must match the whole text. `pattern` holds for every text that `check` passes.
    With `number`, whole numbers need no quotes; with `written`, no number and no true or false
    does: all are taken as they are written. The newline that a block of `code` ends with is no part
    of it. `meant` makes the value of the text and the project's
    folder.
    """

    what: str
    pattern: str = ""
    check: Callable[[str], Complaint | None] | None = None
    lines: bool = False  # it may have more than one line
    empty: bool = False  # it may be ""
    example: str = ""  # for the reference; "" for none
    number: bool = False
    written: bool = False
    code: bool = False
    meant: Callable[[str, Path], object] | None = None


class Number(Struct, frozen=True):
    """A whole number in decimal digits."""

    minimum: int  # the least that is allowed
    maximum: int  # the most that is allowed


class ListOf(Struct, frozen=True):
    """A list."""

    of: Shape  # the shape of each item


class MapOf(Struct, frozen=True):
    """A mapping with free keys; at least `minimum` of them."""

    key: Text  # the shape of each key
    of: Shape  # the shape of each value
    minimum: int = 0
    named: bool = False  # its value is a tuple: each knows its key as `name`


class Field(Struct, frozen=True):
    """One key of a record; `synonyms` are words that people try instead."""

    key: str
    shape: Shape  # what its value may be
    description: str  # one sentence, for the reference and the schema
    required: bool = False  # the record is wrong without it
    default: str = ""  # as the reference shows it; "" for none
    synonyms: tuple[str, ...] = ()
    attribute: str = ""  # of the Struct; "": an added key, whose value is in `more`
    initial: Any = None  # what the attribute is without the key
    always: bool = False  # it is written, too, where it is that


class Record(Struct, frozen=True):
    """A mapping with fixed keys; `name` is what the reference calls it."""

    name: str
    fields: tuple[Field, ...]
    description: str  # one sentence, for the reference and the schema
    of: type[Struct] | None = None  # what it is read as; None: a dict
    places: Mapping[str, str] = {}  # attribute -> the key whose place it is, "" for the whole
    added: Mapping[str, Callable[[], Field]] = {}  # keys of extensions

    @property
    def first(self) -> str:
        """The key that tells this record from the others of a choice."""
        return self.fields[0].key

    def field(self, key: str) -> Field | None:
        """The field of that key, which an extension may have added."""
        if key in self.added:
            return self.added[key]()
        return next((field for field in self.fields if field.key == key), None)

    @property
    def all_fields(self) -> tuple[Field, ...]:
        """Those of extensions, too."""
        return (*self.fields, *(field() for field in self.added.values()))


class Choice(Struct, frozen=True):
    """One of several records, told apart by their first keys."""

    name: str  # what the reference calls it
    options: tuple[Record, ...]  # in the order of the reference
    added: Mapping[str, Callable[[], Record | Unavailable]]  # those of extensions

    @property
    def keys(self) -> tuple[str, ...]:
        """The first keys of all."""
        return (*(option.first for option in self.options), *self.added)

    def option(self, key: str) -> Record | Unavailable:
        """The record of that first key, which an extension may have added."""
        if key in self.added:
            return self.added[key]()
        return next(option for option in self.options if option.first == key)


class DependentShape(Struct, frozen=True):
    """A value whose shape follows from the choice that the key `other` beside it makes."""

    name: str  # what the reference calls it
    other: str
    shapes: Mapping[str, Shape]


class ByForm(Struct, frozen=True):
    """A value whose shape follows from how it is written; None: not written that way."""

    name: str  # what the reference calls it
    scalar: Shape | None = None  # of a single value
    items: Shape | None = None  # of a list
    table: Shape | None = None  # of a mapping

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Those that it may have."""
        return tuple(each for each in (self.scalar, self.items, self.table) if each is not None)


class Unavailable(Struct, frozen=True):
    """A value that an extension would read which cannot be loaded: none is taken."""

    problem: Problem


class Later(Struct, frozen=True):
    """A shape that contains itself: looked up when it is needed, by `name` in a JSON Schema."""

    name: str
    of: Callable[[], Shape]  # gives the shape, when that is complete


Shape: TypeAlias = (
    Text | Number | ListOf | MapOf | Record | Choice | DependentShape | ByForm | Later | Unavailable
)


class Key(Struct, frozen=True):
    """How a key is spelled, where not as its field, and what the reference calls its default.

    A place (`Location`) with the name of a key is where the value of that begins; the one key of
    a Struct that is spelled "" stands in its place. With `always`, the default is written, too.
    """

    name: str | None = None
    default: str = ""
    always: bool = False


class OneOf(Struct, frozen=True):
    """A value that is one of several types.

    `name` is what messages and the reference call it. `types` are those that are read, where they
    are not the ones of the annotation but made from them.
    """

    name: str
    types: tuple[Any, ...] = ()


class Follows(Struct, frozen=True):
    """Which of a value's types it has follows from the choice that the key `other` makes."""

    other: str
    options: tuple[str, ...]  # the first keys of that choice, in the order of the types


class ByName(Struct, frozen=True):
    """A tuple whose items stand in a mapping, by names like `key`, at least `minimum` of them."""

    key: Text
    minimum: int = 0


#: The entry points by which extensions add keys: "component.residual" -> "module:class", where it
#: is a field; "verify-step.rules" -> a class that begins with it. See keys.py.
KEYS = "patchkit.keys"


def also(*words: str) -> tuple[str, ...]:
    """Words that people try instead of a key."""
    return words


# What single values of a manifest may look like, and what is wrong with those that do not.
#
# Each check returns None or a complaint that is more helpful than "does not match".


COMMIT_PATTERN = "[0-9a-f]{40}"
SHA256_PATTERN = "[0-9a-f]{64}"
PACKAGE_PATTERN = "[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
VARIABLE_PATTERN = "[A-Za-z_][A-Za-z0-9_]*"
GROUP_PATTERN = "[a-z][a-z0-9_]*"
VALUE_PATTERN = rf"(?!(?:.*_args|workspace|root|auto_resume|histchars)$){GROUP_PATTERN}"
FOLDER_NAME_PATTERN = "[A-Za-z0-9](?:[A-Za-z0-9._@+-]{0,98}[A-Za-z0-9_-])?"
# Begins with no / ~ or -, has no `..` between slashes and no backslash.
_INWARDS = r"(?![/~-])(?!(?:.*/)?\.\.(?:/|$))"
FOLDER_PATTERN = rf"{_INWARDS}[^\\]*"
FILE_PATTERN = rf"{FOLDER_PATTERN}[^/\\]"
PATCH_PATTERN = rf"{_INWARDS}(?:[^\\]*/)?{PATCH_NAME.pattern}"

_TAKEN_NAMES = {
    "workspace": "always there: the folder of the checkouts",
    "root": "the project's folder in scripts",
    "auto_resume": "a variable of bash's own",
    "histchars": "a variable of bash's own",
}

# What nearly all versions look like: `packaging`, which judges the others, takes 25 ms to import.
_PLAIN_VERSION = r"[0-9]+(?:\.[0-9]+)*(?:\.?(?:rc|RC)[0-9]+)?"
#: What JSON Schema can say of a specifier without losing its reader.
SPECIFIER_PATTERN = (
    r"\s*(?:~=|===?|!=|[<>]=?)\s*[^\s,]+\s*(?:,\s*(?:~=|===?|!=|[<>]=?)\s*[^\s,]+\s*)*"
)


_ABSOLUTE = "^([/~]|[A-Za-z]:)"


def first_complaint(text: str, *complaints: tuple[str, str, str]) -> Complaint | None:
    """The first complaint whose pattern the text has; each is (pattern, what is wrong, hint)."""
    for pattern, what, hint in complaints:
        if re.search(pattern, text):
            return Complaint(what, hint)
    return None


def check_commit(text: str) -> Complaint | None:
    """A full commit id in lower case."""
    whole = "write all 40 digits: `git rev-parse ID` prints them"
    return first_complaint(
        text,
        (r"^(?=.*[A-F])[0-9a-fA-F]{40}\Z", "is in upper case", f"write {text.lower()}"),
        (
            r"(?i)^[0-9a-f]{64}\Z",
            "is 64 digits long",
            "repositories with SHA-256 ids are not supported",
        ),
        (r"(?i)^[0-9a-f]{4,39}\Z", "is a short commit id", whole),
        (r"(?i)^[0-9a-f]{41,}\Z", f"is {len(text)} digits long", whole),
        (
            r"^(?![0-9a-f]{40}\Z)",
            "is not a commit id",
            "a branch or tag can move; `git ls-remote URL NAME` prints its commit",
        ),
    )


def check_package(text: str) -> Complaint | None:
    """A project on the package index."""
    return first_complaint(
        text,
        (
            r"^[A-Za-z0-9._-]+\s*[=<>!~]=",
            "has a version",
            "only the name; the version goes into the pin",
        ),
        ("://", "is a URL", "only the name; pip's or uv's configuration says which index"),
    )


def check_sha256(text: str) -> Complaint | None:
    """A SHA-256 in lower case."""
    return first_complaint(
        text,
        (r"^(?=.*[A-F])[0-9a-fA-F]{64}\Z", "is in upper case", f"write {text.lower()}"),
        ("(?i)^sha256[:=]", "has a prefix", "only the 64 digits"),
        (
            rf"^(?!{SHA256_PATTERN}\Z)",
            "is no SHA-256",
            "64 digits of 0-9a-f; `sha256sum FILE` prints them",
        ),
    )


def check_component_name(text: str) -> Complaint | None:
    """A name that can be a folder, a ref and a word in a shell."""
    if is_component_name(text):
        return None
    if is_component_name(text.lower()):
        return Complaint("has upper-case letters", f"write {text.lower()}")
    return Complaint(
        "cannot name a component",
        "lower-case letters, digits and . _ - inside, at most 64; no name that Windows reserves",
    )


def check_pin_label(text: str) -> Complaint | None:
    """What one of a component's pins is called: its folders have that name, too."""
    if is_component_name(f"any@{text}"):
        return None
    return Complaint(
        "cannot name a pin",
        "folders are called so: letters, digits and . _ + - inside, at most 64, like v0.5.9",
    )


def check_folder_name(text: str) -> Complaint | None:
    """One folder below the workspace."""
    complaint = first_complaint(
        text,
        (_ABSOLUTE, "is an absolute path", "checkouts are folders in the workspace: one name"),
        (r"[/\\]", "is more than one folder", "checkouts are side by side: use one name"),
        (r"^\.", "begins with a dot", "such names are git's and patchkit's own"),
        (
            rf"^(?!{FOLDER_NAME_PATTERN}\Z)",
            "cannot name a folder",
            "ASCII letters, digits and . _ @ + - inside",
        ),
    )
    if complaint is None and not is_component_name(text.lower().strip("_-")[:64].rstrip("._-")):
        return Complaint("is a reserved name", "no .., no .lock at the end, no name of Windows'")
    return complaint


def check_inner_path(text: str) -> Complaint | None:
    """A path that stays below where it starts."""
    return first_complaint(
        text,
        (
            _ABSOLUTE,
            "is not a relative path",
            "write it from the root of the project or repository",
        ),
        ("^-", "begins with -, which programs read as an option", f"write ./{text}"),
        ("://", "is a URL", "a patch from elsewhere: git, commit, path and sha256"),
        (r"\\", "has a backslash", "write forward slashes"),
        (
            r"(?i)(^|/)(\.\.|\.git)(/|\Z)",
            "has a `..` or `.git` in it",
            "paths lead inwards, and never into .git",
        ),
    )


def check_file_path(text: str) -> Complaint | None:
    """A file's path below where it starts."""
    folder = first_complaint(text, (r"/\Z|^\.?\Z", "is a folder", "name the file in it"))
    return folder or check_inner_path(text)


def check_patch_path(text: str) -> Complaint | None:
    """A local patch file."""
    name = text.rpartition("/")[2]
    if not name.endswith(".patch"):
        return Complaint("does not end in .patch", "a series file goes under `series:`")
    if not is_patch_name(name):
        return Complaint("is not a valid patch name", broken_name_rule(name))
    return check_file_path(text)


def check_series_path(text: str) -> Complaint | None:
    """A series file."""
    patch = first_complaint(
        text, (r"\.patch\Z", "ends in .patch", "a single patch goes under `patch:`")
    )
    return patch or check_file_path(text)


def check_manifest_path(text: str) -> Complaint | None:
    """A shared part, from the folder of the file that names it."""
    return first_complaint(
        text,
        (r"(?<!\.yaml)(?<!\.yml)\Z", "does not end in .yaml", "name the file in full"),
        (
            rf"{_ABSOLUTE}|\\",
            "is not a relative path",
            "write it from this file's folder, with /",
        ),
    )


def check_patch_name(text: str) -> Complaint | None:
    """What a patch is called in its stack."""
    if is_patch_name(text):
        return None
    return Complaint("is not a valid patch name", broken_name_rule(text))


def check_value_name(text: str) -> Complaint | None:
    """A site value's name: a shell variable that means nothing to shells and to our scripts."""
    if text in _TAKEN_NAMES:
        return Complaint("is taken", f"it is {_TAKEN_NAMES[text]}")
    if text.endswith("_args"):
        return Complaint("ends in _args", "launch scripts call the groups of arguments so")
    return None


def check_version(text: str) -> Complaint | None:
    """One exact version."""
    if _is_version(text):
        return None
    bare = text.lstrip("=~<>! ")
    if bare != text and _is_version(bare):
        return Complaint("is a range", f'a pin is one version: "{bare}"')
    return Complaint("is no version", "as the package index writes it, like 0.16.0 or 1.2.0rc1")


def check_specifier(text: str) -> Complaint | None:
    """A version specifier as in PEP 440."""
    wrong = [clause for clause in text.split(",") if not _is_specifier(clause)]
    if not wrong:
        return None
    clause = wrong[0].strip()
    if _is_version(clause):
        return Complaint("says no comparison", f'write "=={clause}", or ">={clause}"')
    if clause.startswith("=") and _is_version(clause[1:].strip()):
        return Complaint("has a single =", f'write "={clause}"')
    return Complaint("is not a version specifier", 'as pip takes it: ">=3.11,<3.12", "==8.5.*"')


def check_track(text: str) -> Complaint | None:
    """A branch, tag or pattern of them."""
    what, hint = "cannot name a branch or tag", "like main, v*, or refs/tags/core_v*"
    return first_complaint(text, (r"[\s~^:\\]|\.\.|@\{|//|^[-/]", what, hint))


def check_pattern(text: str) -> Complaint | None:
    """A regular expression with one group."""
    import regex  # noqa: PLC0415 (rarely needed)

    try:
        groups = regex.compile(text, regex.MULTILINE).groups
    except (regex.error, OverflowError, RecursionError) as error:
        return Complaint(f"is no regular expression: {error}", "Python's syntax")
    hint = "the value is the one group; (?:...) is none"
    return None if groups == 1 else Complaint(f"has {groups} groups, and not one", hint)


def _is_version(text: str) -> bool:
    if re.fullmatch(_PLAIN_VERSION, text):
        return True
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415

    try:
        Version(text)
    except InvalidVersion:
        return False
    return text == text.strip()


def _is_specifier(clause: str) -> bool:
    if re.fullmatch(rf" *([<>]=?|[=!]=) *{_PLAIN_VERSION} *", clause):
        return True
    from packaging.specifiers import InvalidSpecifier, Specifier  # noqa: PLC0415

    try:
        Specifier(clause)
    except InvalidSpecifier:
        return False
    return True


# Which URLs a manifest may name, and what is wrong with the others.
#
# Remote: https, http, ssh, git, and ssh's short form `user@host:path`. Local, because a manifest
# is always a file of this machine: only said outright, as `file:///folder` or as a path that
# begins with `./` or `../` (taken from the project's root). Everything else is refused: `ext::`
# and other remote helpers run programs, a leading `-` would be read as an option, a bare path may
# be meant as either.


_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_REST = r"/[^\s\\]+"
_USER = r"(?:[^\s@/:-][^\s@/]*@)?"
_LOCAL = r"file:///[^\s\\]+|\.\.?(?:/[^\s\\]*)?"

#: What the JSON Schema can say about a git URL, an archive URL.
GIT_PATTERN = (
    rf"(?:https?|ssh|git)://{_USER}{_HOST}{_REST}"
    rf"|[A-Za-z0-9_][A-Za-z0-9_.-]*@{_HOST}:[^\s\\-][^\s\\]*|{_LOCAL}"
)
ARCHIVE_PATTERN = rf"https?://{_USER}{_HOST}{_REST}|{_LOCAL}"

_RELATIVE = r"\.\.?(/.*)?"
_PASSWORD = r"(?P<scheme>https?|git|ssh)://(?P<user>[^@/]*)@"

_FORMS = "https://host/path, ssh://host/path, user@host:path, file:///folder or ./folder"


def is_local(url: str) -> bool:
    """Whether `url` names a place on this machine."""
    return url.startswith("file:") or re.fullmatch(_RELATIVE, url) is not None


def resolve_url(url: str, root: Path) -> str:
    """`url` with a relative path made a file URL; `root` is the project's folder."""
    if not re.fullmatch(_RELATIVE, url):
        return url
    from urllib.parse import quote  # noqa: PLC0415 (3 ms, and rarely needed)

    return "file://" + quote(os.path.normpath(root.absolute() / url))


def holds_secret(url: str) -> bool:
    """Whether `url` carries a password, or a user name where only a token makes sense."""
    match = re.match(_PASSWORD, url)
    if match is None:
        return False
    return ":" in match["user"] or match["scheme"].startswith("http")


def without_secret(text: str) -> str:
    """A text with what could be a secret in a URL left out, for messages."""
    return re.sub(r"((?<=http://)|(?<=https://))[^/@]*@|(?<=://)[^/@:]*:[^/@]*@", "", text)


def check_url(text: str) -> Complaint | None:
    """What is wrong with the URL of a repository or an archive, beyond its pattern."""
    return first_complaint(
        text,
        ("^-", "begins with -, which programs read as an option", _FORMS),
        ("^[A-Za-z0-9+.-]*::", "names a remote helper, which runs a program", _FORMS),
        (
            r"^file:(//[^/]|(///?)?\Z)",
            "names no folder of this machine",
            "file:///absolute/path, or ./path",
        ),
        (r"\\", "has a backslash", "write forward slashes"),
        (r"\s", "has a blank in it", "write %20 for a blank in a URL"),
        ("^/", "is a path, not a URL", f"file://{text} if a local folder is meant"),
        ("^~", "is in a home folder, which is another one for everybody", _FORMS),
        (
            "^(?!(https?|ssh|git|file):)[A-Za-z][A-Za-z0-9+.-]*:/",
            f"has the scheme {text.partition(':')[0]}, which is not allowed",
            _FORMS,
        ),
        (
            rf"^(?!{_RELATIVE}\Z)[^:]*\Z",
            "is not a URL",
            f"./{text} if a local folder is meant; else {_FORMS}",
        ),
    )


# Kinds of values that several keys have, as types to annotate fields with.


def plain_path(path: str, _root: Path = Path()) -> str:
    """A path in its one spelling: without `./` and a final slash."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _stripped(text: str, _root: Path) -> str:
    return text.strip()


Line = Annotated[str, Text("one line of text")]
Prose = Annotated[str, Text("text", lines=True)]
Reason = Annotated[str, Text("text", lines=True, meant=_stripped)]
Word = Annotated[str, Text("text on one line", r"[^\n\r]+")]
Written = Annotated[str, Text("text", r"[^\n\r]*", empty=True, written=True)]
Commit = Annotated[CommitId, Text("a full commit id", COMMIT_PATTERN, check_commit)]
Sha256 = Annotated[str, Text("a SHA-256", SHA256_PATTERN, check_sha256)]
Variable = Annotated[str, Text("a variable's name", VARIABLE_PATTERN, example="HCCL_PORT")]
PackageName = Annotated[
    str, Text("a package name", PACKAGE_PATTERN, check_package, example="megatron-core")
]
ComponentName = Annotated[
    str, Text("a component name", COMPONENT_NAME.pattern, check_component_name)
]
GitUrl = Annotated[
    str,
    Text(
        "a git URL", GIT_PATTERN, check_url, example="https://host/project.git", meant=resolve_url
    ),
]
ArchiveUrl = Annotated[
    str,
    Text(
        "an archive's URL",
        ARCHIVE_PATTERN,
        check_url,
        example="https://host/a.tar.gz",
        meant=resolve_url,
    ),
]
InnerFolder = Annotated[
    str, Text("a folder", FOLDER_PATTERN, check_inner_path, empty=True, meant=plain_path)
]
InnerFile = Annotated[str, Text("a file's path", FILE_PATTERN, check_file_path, meant=plain_path)]
Strip = Annotated[int, Number(0, 16)]
