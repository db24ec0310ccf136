"""In the place of `git` or `patch` while somebody's test scripts run: note the call, then do it.

A case is a folder: `argv`, `patch` (the bytes given as a file or on stdin), `files.json` (what is
in the working folder: path -> mode and contents), `code` (how the real program ended). Runs as a
program of its own, with the standard library only: `recorder.py REAL CASES ARGUMENT...`.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

#: Options of `git apply` and of `patch` whose value is the next argument.
VALUED = frozenset(
    (
        *("-p", "-C", "-o", "-r", "-d", "-i", "-F", "-D", "-g", "-V", "-B", "-Y", "-z"),
        *("--directory", "--exclude", "--include", "--whitespace", "--build-fake-ancestor"),
    )
)
#: More in a working folder than this is no test case.
MOST = 2000


def main(argv: list[str]) -> int:
    real, cases, *words = argv
    called = real.rpartition("/")[2]
    patch, stdin = _patch(called, words[1:] if called == "git" else words)
    files = dict(read_files(Path.cwd()))
    done = subprocess.run([real, *words], input=stdin, check=False)
    if patch and len(files) < MOST:
        _keep(Path(cases), words, patch, files, done.returncode)
    return done.returncode


def _patch(called: str, words: list[str]) -> tuple[bytes, bytes | None]:
    """The patch, and what the real program must be given on stdin as it was read here."""
    names, rest = [], iter(words)
    named = ""
    for word in rest:
        if word in VALUED:
            value = next(rest, "")
            named = value if called == "patch" and word == "-i" else named
        elif called == "patch" and word.startswith("--input="):
            named = word.removeprefix("--input=")
        elif not word.startswith("-") or word == "-":
            names.append(word)
    if called == "patch":
        names = [named] if named else names[1:2]
    if names and names != ["-"]:
        return b"".join(Path(name).read_bytes() for name in names if Path(name).is_file()), None
    data = sys.stdin.buffer.read()
    return data, data


def read_files(root: Path) -> Iterator[tuple[str, tuple[int, bytes]]]:
    """Path -> mode and contents of the files below, but for git's own; of MOST or so."""
    seen = 0
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        seen += len(names) + len(folders)
        if seen > MOST:  # a script that went to the root
            return
        links = [name for name in folders if Path(folder, name).is_symlink()]
        for path in (Path(folder, name) for name in [*names, *links]):
            if path.is_symlink():
                data, mode = os.fsencode(path.readlink()), 0o120000
            elif path.is_file() and os.access(path, os.R_OK):
                data = path.read_bytes()
                mode = 0o100755 if path.stat().st_mode & 0o100 else 0o100644
            else:
                continue
            yield str(path.relative_to(root)), (mode, data)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _keep(
    cases: Path, words: list[str], patch: bytes, files: dict[str, tuple[int, bytes]], code: int
) -> None:
    text = {"script": os.environ.get("PATCHKIT_SCRIPT", ""), "argv": words, "code": code}
    text["patch"] = _text(patch)
    text["files"] = {
        _text(os.fsencode(name)): (mode, _text(data)) for name, (mode, data) in files.items()
    }
    number = len(list(cases.iterdir()))
    while True:
        try:
            with (cases / f"{number:05}.json").open("x") as stream:
                json.dump(text, stream)
            return
        except FileExistsError:
            number += 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
