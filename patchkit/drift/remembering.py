"""Keep a walk, so that the next one only looks at what has landed since.

One small file for each series on each base. It is a shortcut and nothing more: a file that is
damaged, or does not agree with what the patches come to at its end, is as good as none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from patchkit.atomic import replace_file
from patchkit.drift.judging import HunkFault, PatchVerdict
from patchkit.drift.walking import Change, Touch, Walk
from patchkit.gitcmd.firstparent import Commit
from patchkit.histories import History
from patchkit.model.outcome import Reason, Status
from patchkit.series import LoadedPatch

#: Raise it when the same history and series could come to another walk.
_FORM = 1


def memory_path(cache: Path, history: History, patches: Sequence[LoadedPatch]) -> Path:
    """Where the walk of this series from this pin along this branch is kept."""
    series = [[each.name, each.sha256, each.strip, each.subdirectory] for each in patches]
    facts = [_FORM, history.repository.git_dir.name, history.pin, history.ref, series]
    return cache / "drift" / f"{sha256(json.dumps(facts).encode()).hexdigest()[:32]}.json"


def recall(path: Path) -> Walk | None:
    """The walk that was kept; None if there is none that can be believed."""
    try:
        checksum, _, body = path.read_bytes().partition(b"\n")
        if sha256(body).hexdigest().encode() != checksum:
            return None
        return _walk(json.loads(body))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(path: Path, walk: Walk) -> None:
    """Keep a walk; best effort, as on a disk that can only be read."""
    body = json.dumps(asdict(walk), separators=(",", ":")).encode()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, sha256(body).hexdigest().encode() + b"\n" + body)


def _walk(data: Mapping[str, Any]) -> Walk:
    return Walk(
        start=data["start"],
        tip=data["tip"],
        length=data["length"],
        touches=tuple(
            Touch(each["position"], Commit(**each["commit"]), each["parent"], tuple(each["paths"]))
            for each in data["touches"]
        ),
        at_pin=tuple(
            PatchVerdict(Status(each["status"]), _faults(each)) for each in data["at_pin"]
        ),
        changes=tuple(
            tuple(Change(each["position"], Status(each["status"]), _faults(each)) for each in patch)
            for patch in data["changes"]
        ),
    )


def _faults(data: Mapping[str, Any]) -> tuple[HunkFault, ...]:
    return tuple(HunkFault(**{**each, "reason": Reason(each["reason"])}) for each in data["faults"])
