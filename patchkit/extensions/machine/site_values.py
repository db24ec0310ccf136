"""Site values: what a manifest leaves open, from a values file and from the command line.

A values file is YAML, `name: value` a line. Nothing is guessed: a name that the manifest does not
declare, a value that is a placeholder and a value that is missing are reported, all at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from patchkit.disk.files import read_plain
from patchkit.errors import BadInputError, Problem, UsageError
from patchkit.manifest.keys import shape_of
from patchkit.manifest.types import Complaint, Text, Written, first_complaint
from patchkit.manifest.validate import Suggestions, Whole, read_file, shown
from patchkit.manifest.values import Manifest
from patchkit.manifest.yaml_nodes import Scalar
from patchkit.model.names import ALWAYS_THERE

_FILE = shape_of(Mapping[Annotated[str, Text("a value's name")], Written])

#: Where checkouts are, unless somebody says otherwise; relative to the project's folder.
DEFAULT_WORKSPACE = "workspace"

# What is no value, and what people leave in examples: <path>, /path/to/model, TODO, xxx.
_COMPLAINTS = (
    (r"^\s|\s\Z", "begins or ends with a blank", "delete the blank"),
    ("^~", "begins with ~, which nothing expands in a script", "write the folder in full"),
    (
        r"(?i)<[^>]*>|(?:^|/)path/to(?:/|$)|\b(?:your|my)[-_ ][a-z]"
        r"|\b(?:todo|fixme|changeme|xxx+)\b",
        "is a placeholder",
        "write its value for this site",
    ),
)


class GivenValue(Struct, frozen=True):
    """A value that somebody gave, and where: "site.yaml:3" or "--set model_path"."""

    name: str  # the site value's
    text: str  # as it was typed
    where: str


class SiteValues(Struct, frozen=True):
    """The values that are there; `missing` maps those declared and not given to what they are."""

    values: Mapping[str, str]
    missing: Mapping[str, str]

    def require(self, names: Iterable[str], manifest: Manifest) -> None:
        """Raise UsageError that names every value of `names` that is missing."""
        absent = [name for name in dict.fromkeys(names) if name in self.missing]
        places = {value.name: str(value.where) for value in manifest.values}
        options = " ".join(f"--set {name}=..." for name in absent)
        hint = f"give {options}, or a file that has them: --set @FILE"
        if absent:
            raise UsageError(
                *(
                    Problem(
                        f"{name} has no value: {self.missing[name]}",
                        places[name],
                        hint if name == absent[-1] else "",
                    )
                    for name in absent
                )
            )


def read_values(path: Path) -> tuple[GivenValue, ...]:
    """The values of a values file; raises BadInputError with every problem."""
    try:
        data = read_plain(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    if not re.search(rb"^[^#\s]", data, re.MULTILINE):
        return ()  # nothing but comments
    table, _ = read_file(data, path, _FILE, Whole("the values file"))
    return tuple(
        GivenValue(key.text, value.text, str(key.where))
        for key, value in table.entries
        if isinstance(value, Scalar)
    )


def given_values(settings: Sequence[str], found: Path | None = None) -> list[GivenValue]:
    """The values of the words behind --set: those of files (@FILE), then NAME=VALUE.

    `found` is the file that is read where none is named, if it is there. Raises UsageError.
    """
    files = [Path(setting[1:]) for setting in settings if setting.startswith("@")]
    if not files and found is not None and found.is_file():
        files = [found]
    given = [value for file in files for value in read_values(file)]
    for setting in settings:
        name, equals, text = setting.partition("=")
        if setting.startswith("@"):
            continue
        if not equals:
            hint = f"write --set {name}=VALUE"
            raise UsageError(Problem(f"--set {shown(setting)} has no =", hint=hint))
        given.append(GivenValue(name, text, f"--set {shown(name)}"))
    return given


def resolve_site(manifest: Manifest, given: Sequence[GivenValue]) -> SiteValues:
    """What the manifest's values are at this site; of values given twice, the later holds.

    Raises BadInputError for values that the manifest does not declare, or that are none.
    """
    problems = [problem for value in given for problem in _wrong(value, manifest)]
    if problems:
        raise BadInputError(*problems)
    values = {"workspace": DEFAULT_WORKSPACE}
    values |= {value.name: value.default for value in manifest.values if value.default is not None}
    values |= {value.name: value.text for value in given}
    missing = {
        value.name: value.description for value in manifest.values if value.name not in values
    }
    return SiteValues(values, missing)


def _wrong(given: GivenValue, manifest: Manifest) -> Iterator[Problem]:
    known = [*(value.name for value in manifest.values), *ALWAYS_THERE]
    if given.name not in known:
        hint = Suggestions().hint([given.name], known, f"it has {', '.join(known)}")
        what = f"{shown(given.name)} is not a site value of {manifest.path.name}"
        yield Problem(what, given.where, hint)
        return
    text = given.text
    unprintable = Complaint("has a control character", "delete it")
    complaint = unprintable if not text.isprintable() else first_complaint(text, *_COMPLAINTS)
    if complaint is not None:
        what = f"{given.name}: {shown(text)} {complaint.what}"
        yield Problem(what, given.where, complaint.hint)
