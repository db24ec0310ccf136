"""Mergers that a manifest names for files in conflict: run, and their answers.

A merger is a shell command. It runs in a scratch folder of its own, with these environment
variables:

- PATCHKIT_BASE, PATCHKIT_UPSTREAM, PATCHKIT_PATCHED: files with what the patch was made for, what
  upstream has now, and the first with the patch
- PATCHKIT_RESULT: the file to write; it holds the conflict, with zdiff3 markers
- PATCHKIT_INPUT: a JSON file with all that is known, see `_input`

Exit code 0 says that the result is there, 1 that the merger gives up; any other is a failure. The
engine checks what comes (`carry/external.py`). Nothing runs that the user did not ask for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from patchkit.carry.carried import Merger, MergerAnswer, MergeRequest
from patchkit.disk.files import read_plain
from patchkit.gitcmd.user_command import run_command
from patchkit.manifest.globs import Scope
from patchkit.manifest.values import ExternalMerger
from patchkit.model.patch import Hunk
from patchkit.stack.build import SeriesPatch, patch_changes

_GIVES_UP = 1
#: A result is at most so many times as large as the largest of its sides, and so many bytes more.
_TIMES, _MORE = 4, 1 << 20
#: No file that a merger writes is larger, in bytes.
_LARGEST_FILE = 64 << 20
SECONDS = 60


def merger_of(named: Sequence[ExternalMerger], *, run: bool) -> Merger:
    """What asks the first merger whose `files` name a path.

    Without `run` nothing runs: the answer says what was left undone.
    """

    def merger(patch: SeriesPatch, request: MergeRequest) -> MergerAnswer | None:
        for each in named:
            if Scope(each.files).covers(request.path):
                return _asked(each, patch, request) if run else _not_run(each)
        return None

    return merger


def _not_run(merger: ExternalMerger) -> MergerAnswer:
    what = f"was not run; read its command at {merger.where.file.name}:{merger.where.line}"
    return MergerAnswer(merger.title, problem=f"{what}, then run this with --run")


def _asked(merger: ExternalMerger, patch: SeriesPatch, request: MergeRequest) -> MergerAnswer:
    with TemporaryDirectory(prefix="patchkit-merge-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        ending = Path(request.path).suffix
        sides = {
            "BASE": (f"base{ending}", request.base),
            "UPSTREAM": (f"upstream{ending}", request.upstream),
            "PATCHED": (f"patched{ending}", request.patched),
            "RESULT": (f"result{ending}", request.marked),
            "INPUT": ("input.json", _input(patch, request)),
        }
        for file, data in sides.values():
            (folder / file).write_bytes(data)
        ended = run_command(
            merger.run,
            folder,
            patience=merger.seconds or SECONDS,
            variables={f"PATCHKIT_{key}": str(folder / file) for key, (file, _) in sides.items()},
            largest=_LARGEST_FILE,
        )
        if ended.code == _GIVES_UP:
            return MergerAnswer(merger.title, problem="gave up")
        if ended.problem:
            said = f"{ended.problem}: {ended.output}" if ended.output else ended.problem
            return MergerAnswer(merger.title, problem=said.replace(f"{folder}/", ""))
        most = _MORE + _TIMES * max(map(len, (request.base, request.upstream, request.patched)))
        result = folder / sides["RESULT"][0]
        try:
            if result.is_symlink():
                return MergerAnswer(merger.title, problem="left a link in place of a result")
            data = read_plain(result, most=most)
        except OSError as error:
            why = error.strerror or str(error)
            return MergerAnswer(merger.title, problem=f"left no result: {why}")
    return MergerAnswer(merger.title, data)


def _input(patch: SeriesPatch, request: MergeRequest) -> bytes:
    """All that is known of a conflict, as JSON: the patch with its reason, upstream's commits."""
    subject, _, reason = patch.file.message.partition("\n")
    changes = [each for each in patch_changes(patch) if request.path in (each.old_path, each.path)]
    data = {
        "version": 1,
        "path": request.path,
        "patch": {"name": patch.name, "subject": subject, "reason": reason.strip()},
        "hunks": [_text(hunk) for change in changes for hunk in change.hunks],
        "conflict": list(request.reasons),
        "upstream_commits": [
            dict(zip(("id", "subject"), each.partition(" ")[::2], strict=True))
            for each in request.commits
        ],
    }
    return json.dumps(data, indent=1, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _text(hunk: Hunk) -> str:
    lines = b"".join(hunk.lines).decode("utf-8", "replace")
    return f"@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@\n{lines}"
