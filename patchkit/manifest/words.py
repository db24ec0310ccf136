"""What single values of a manifest may look like, and what is wrong with those that do not.

Each check returns None or a complaint that is more helpful than "does not match".
"""

from __future__ import annotations

import re

from patchkit.manifest.shapes import Complaint
from patchkit.model.names import is_component_name, is_patch_name

COMMIT_PATTERN = "[0-9a-f]{40}"
SHA256_PATTERN = "[0-9a-f]{64}"
PACKAGE_PATTERN = "[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
VERSION_PATTERN = "[vV]?[0-9][0-9A-Za-z.!+_-]*"
VARIABLE_PATTERN = "[A-Za-z_][A-Za-z0-9_]*"
GROUP_PATTERN = "[a-z][a-z0-9_]*"
VALUE_PATTERN = rf"(?!(?:.*_args|workspace|root|auto_resume|histchars)$){GROUP_PATTERN}"
ARGUMENT_PATTERN = r"(?:-{1,2}[A-Za-z0-9]|[+~]{0,2}[A-Za-z_])[A-Za-z0-9_./@:-]*"
SYSTEM_PACKAGE_PATTERN = r"[a-z0-9][a-z0-9+.-]*(?:=[A-Za-z0-9.+:~-]+)?"
# registry/name:tag@digest, any part of which may be a site value
IMAGE_PATTERN = r"(?:[A-Za-z0-9._/:@-]|\$\{[a-z][a-z0-9_]*\})+"
FOLDER_NAME_PATTERN = "[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?"

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


def check_commit(text: str) -> Complaint | None:
    """A full commit id in lower case."""
    lower = text.lower()
    if re.fullmatch("[0-9a-f]{40}", lower):
        return None if text == lower else Complaint("is in upper case", f"write {lower}")
    if re.fullmatch("[0-9a-f]{64}", lower):
        return Complaint("is 64 digits long", "repositories with SHA-256 ids are not supported")
    if re.fullmatch("[0-9a-f]{4,}", lower):
        kind = "a short commit id" if len(text) < 40 else f"{len(text)} digits long"
        return Complaint(f"is {kind}", "write all 40 digits: `git rev-parse ID` tells them")
    return Complaint(
        "is no commit id", "a branch or tag can move; `git ls-remote URL NAME` tells its commit"
    )


def check_package(text: str) -> Complaint | None:
    """A project on the package index."""
    if re.match(r"[A-Za-z0-9._-]+\s*[=<>!~]=", text):
        return Complaint("has a version", "only the name; the version goes into the pin")
    if "://" in text:
        return Complaint("is a URL", "only the name; pip's or uv's configuration says which index")
    return None


def check_sha256(text: str) -> Complaint | None:
    """A SHA-256 in lower case."""
    lower = text.lower()
    if re.fullmatch(SHA256_PATTERN, lower):
        return None if text == lower else Complaint("is in upper case", f"write {lower}")
    if lower.startswith(("sha256:", "sha256=")):
        return Complaint("has a prefix", "only the 64 digits")
    return Complaint("is no SHA-256", "64 digits of 0-9a-f; `sha256sum FILE` tells them")


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


def check_folder_name(text: str) -> Complaint | None:
    """One folder below the workspace."""
    if text.startswith(("/", "~")) or re.match("[A-Za-z]:", text):
        return Complaint("is an absolute path", "checkouts are folders in the workspace: one name")
    if "/" in text or "\\" in text:
        return Complaint("is more than one folder", "checkouts stand side by side: one name")
    if text.startswith("."):
        return Complaint("begins with a dot", "such names are git's and patchkit's own")
    if not re.fullmatch(FOLDER_NAME_PATTERN, text):
        return Complaint("cannot name a folder", "ASCII letters, digits and . _ - inside")
    if not is_component_name(text.lower().strip("_-")[:64].rstrip("._-")):
        return Complaint("is a reserved name", "no .., no .lock at the end, no name of Windows'")
    return None


def check_inner_path(text: str) -> Complaint | None:
    """A path that stays below where it starts."""
    if text.startswith(("/", "~")) or re.match("[A-Za-z]:", text):
        return Complaint(
            "is no relative path", "write it from the root of the project or repository"
        )
    if text.startswith("-"):
        return Complaint("begins with -, which programs read as an option", f"write ./{text}")
    if "://" in text:
        return Complaint("is a URL", "a patch from elsewhere: git, commit, path and sha256")
    if "\\" in text:
        return Complaint("has a backslash", "write forward slashes")
    parts = text.lower().split("/")
    if ".." in parts or ".git" in parts:
        return Complaint("has a `..` or `.git` in it", "paths lead inwards, and never into .git")
    return None


def check_file_path(text: str) -> Complaint | None:
    """A file's path below where it starts."""
    if text.endswith("/") or text in (".", ""):
        return Complaint("is a folder", "name the file in it")
    return check_inner_path(text)


def check_patch_path(text: str) -> Complaint | None:
    """A local patch file."""
    name = text.rpartition("/")[2]
    if not name.endswith(".patch"):
        return Complaint("does not end in .patch", "a series file goes under `series:`")
    if not is_patch_name(name):
        return Complaint("is no patch name", "ASCII letters, digits and . _ + - inside")
    return check_file_path(text)


def check_series_path(text: str) -> Complaint | None:
    """A series file."""
    if text.endswith(".patch"):
        return Complaint("ends in .patch", "a single patch goes under `patch:`")
    return check_file_path(text)


def check_manifest_path(text: str) -> Complaint | None:
    """A shared part, from the folder of the file that names it."""
    if not text.endswith((".yaml", ".yml")):
        return Complaint("does not end in .yaml", "name the file in full")
    if text.startswith(("/", "~")) or "\\" in text or re.match("[A-Za-z]:", text):
        return Complaint("is not a relative path", "write it from this file's folder, with /")
    return None


def check_patch_name(text: str) -> Complaint | None:
    """What a patch is called in its stack."""
    if is_patch_name(text):
        return None
    return Complaint(
        "is no patch name", "ASCII letters, digits and . _ + - inside, .patch at the end"
    )


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
    return Complaint("is no version specifier", 'as pip takes it: ">=3.11,<3.12", "==8.5.*"')


def check_track(text: str) -> Complaint | None:
    """A branch, tag or pattern of them."""
    if re.search(r"[\s~^:\\]|\.\.|@\{|//", text) or text.startswith(("-", "/")):
        return Complaint("cannot name a branch or tag", "like main, v*, or refs/tags/core_v*")
    return None


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
