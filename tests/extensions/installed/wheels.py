"""Wheels as an installer puts them: files, .dist-info and a RECORD that is true."""

from __future__ import annotations

import compileall
import csv
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from tests.support.projects import write_files


def digest(data: bytes) -> str:
    """A hash as RECORD writes it."""
    return "sha256=" + urlsafe_b64encode(sha256(data).digest()).decode().rstrip("=")


def install(
    site: Path,
    files: Mapping[str, str],
    *,
    name: str = "demo",
    version: str = "1.0",
    end: str = "\n",
    compiled: bool = False,
    editable: Path | None = None,
) -> Path:
    """Install a wheel; returns its RECORD. `compiled`: with .pyc files, which RECORD lists."""
    info = f"{name}-{version}.dist-info"
    every = {**files, f"{info}/METADATA": f"Name: {name}\n", f"{info}/INSTALLER": "pip\n"}
    if editable is not None:
        url = {"url": editable.as_uri(), "dir_info": {"editable": True}}
        every[f"{info}/direct_url.json"] = json.dumps(url)
    write_files(site, every)
    rows = [f"{p},{digest((site / p).read_bytes())},{len((site / p).read_bytes())}" for p in every]
    if compiled:
        for path in (each for each in files if each.endswith(".py")):
            compileall.compile_file(site / path, quiet=1)
        found = sorted(p.relative_to(site).as_posix() for p in site.rglob("*.pyc"))
        rows += [f"{path},," for path in found]
    rows.append(f"{info}/RECORD,,")
    record = site / info / "RECORD"
    record.write_bytes("".join(row + end for row in rows).encode())
    return record


def contents(folder: Path) -> dict[str, bytes]:
    """Path -> bytes of every file below a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def require_true(record: Path) -> None:
    """Assert that each file which RECORD lists with a hash is there, with that hash."""
    site = record.parent.parent
    for path, told, size in csv.reader(record.read_text().splitlines()):
        assert (site / path).is_file(), path
        data = (site / path).read_bytes()
        assert (told, size) in (("", ""), (digest(data), str(len(data)))), path
