"""Names that end up as files, folders, refs and shell words: what they may look like.

A name is ASCII, starts with a letter or digit, and has no character that a shell, git or a
case-insensitive file system treats specially. Patch names end in `.patch`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

COMPONENT_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
# `git format-patch` cuts a long subject anywhere, so that a name may end in a dash or a dot
PATCH_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,119}\.patch")
RECIPE_ENDING = ".recipe.yml"
COMMIT_ID = re.compile(r"[0-9a-f]{40}")
SHA256 = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

#: Device names that Windows reserves: a series must be checked out there, too.
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)


def is_component_name(text: str) -> bool:
    """Whether `text` can name a component (and so a checkout folder and a ref)."""
    return bool(COMPONENT_NAME.fullmatch(text)) and _is_safe(text)


def is_patch_name(text: str) -> bool:
    """Whether `text` can name a patch file in a series."""
    stem = text.removesuffix(".patch")
    return bool(PATCH_NAME.fullmatch(text)) and ".." not in stem and not _RESERVED.fullmatch(text)


def short_id(pin: str) -> str:
    """The id of a commit, blob or archive as messages show it; any other pin stays whole."""
    kind, mark, digits = pin.rpartition(":")
    return f"{kind}{mark}{digits[:10]}" if _ID.fullmatch(digits) else pin


def slug(text: str) -> str:
    """A patch name without its ending for a subject line; "patch" if nothing usable is left."""
    text = re.sub(r"^(?:\[[^\]]*\]\s*)+", "", text)
    words = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower()
    return words[:52].rstrip("-") or "patch"


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


def _is_safe(text: str) -> bool:
    return ".." not in text and not text.endswith(".lock") and not _RESERVED.fullmatch(text)
