"""Git's objects as bytes: how a blob, a tree and a commit are written, and what their ids are.

The rules are git's object format (gitformat-pack, git-hash-object); SHA-1 repositories only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha1
from typing import AnyStr

from msgspec import Struct

from patchkit.model.patch import Identity

TREE_MODE = 0o040000
FILE_MODE = 0o100644
EXECUTABLE_MODE = 0o100755
SYMLINK_MODE = 0o120000
SUBMODULE_MODE = 0o160000

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

#: Where git writes an id and there is no object.
NO_OBJECT = "0" * 40


class GitObject(Struct, frozen=True):
    """An object to write: its kind ("blob", "tree", "commit"), id and payload.

    `like` is the id of an object that it resembles: stored together, it takes less room.
    """

    kind: str
    oid: str
    payload: bytes
    like: str | None = None


class TreeEntry(Struct, frozen=True):
    """One name in a tree."""

    mode: int
    oid: str


def make_object(kind: str, payload: bytes, like: str | None = None) -> GitObject:
    """The object of that kind with its id."""
    digest = sha1(b"%s %d\x00%s" % (kind.encode(), len(payload), payload), usedforsecurity=False)
    return GitObject(kind, digest.hexdigest(), payload, like)


def make_tree(entries: Mapping[str, TreeEntry]) -> GitObject:
    """A tree object; names are `str` with surrogateescape, in any order."""
    rows = sorted((_sort_key(name, entry.mode), name, entry) for name, entry in entries.items())
    payload = b"".join(
        b"%o %s\x00%s" % (entry.mode, encode_path(name), bytes.fromhex(entry.oid))
        for _, name, entry in rows
    )
    return make_object("tree", payload)


def parse_tree(payload: bytes) -> dict[str, TreeEntry]:
    """A tree object's entries, in its order."""
    entries: dict[str, TreeEntry] = {}
    position = 0
    while position < len(payload):
        space = payload.index(b" ", position)
        end = payload.index(b"\x00", space)
        oid = payload[end + 1 : end + 21].hex()
        entries[decode_path(payload[space + 1 : end])] = TreeEntry(
            int(payload[position:space], 8), oid
        )
        position = end + 21
    return entries


def make_commit(
    *, tree: str, parents: Iterable[str], author: Identity, committer: Identity, message: str
) -> GitObject:
    """A commit object; the message gets exactly one final newline."""
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines.append(f"author {_signature(author)}")
    lines.append(f"committer {_signature(committer)}")
    text = "\n".join(lines) + "\n\n" + message.rstrip("\n") + "\n"
    return make_object("commit", text.encode("utf-8", "surrogateescape"))


def lines_of(text: AnyStr) -> list[AnyStr]:
    """The lines of what others wrote, without their ends; only LF ends one.

    str.splitlines ends lines at U+2028, U+0085, form feeds and more, which names may have.
    """
    lines = text.split(b"\n") if isinstance(text, bytes) else text.split("\n")
    return lines if lines[-1] else lines[:-1]


def encode_path(path: str) -> bytes:
    """A path's bytes as git stores them."""
    return path.encode("utf-8", "surrogateescape")


def decode_path(data: bytes) -> str:
    """A path as text from which `encode_path` gives the same bytes."""
    return data.decode("utf-8", "surrogateescape")


def _signature(person: Identity) -> str:
    return f"{person.name} <{person.email}> {person.date}"


def _sort_key(name: str, mode: int) -> bytes:
    # git compares a folder's name as if it ended in "/"
    return encode_path(name) + (b"/" if mode == TREE_MODE else b"")
