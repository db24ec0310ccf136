"""Commands of `verify` steps, run in a scratch copy of the patched tree.

They come from a manifest that somebody else may have written, so nothing here runs unless the user
asks for it by a flag. A command that cannot be started, does not end or fails is a finding.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from patchkit.explain.terrain import Overlay, Terrain
from patchkit.manifest.values import RunStep
from patchkit.model.lint import Finding, Severity
from patchkit.model.objects import EXECUTABLE_MODE, FILE_MODE, SYMLINK_MODE, lines_of
from patchkit.verify.steps import Verifying, title_of

#: Seconds after which a command is ended.
PATIENCE = 900.0

#: So many of a command's last lines are told.
_LINES = 5


def run_findings(verifying: Verifying, steps: Sequence[RunStep]) -> Iterator[Finding]:
    """Run each command in a scratch copy of its own; what fails is a finding."""
    for step in steps:
        tree = verifying.tree_after(step.after)
        if tree is None:
            continue  # told by step_findings
        with TemporaryDirectory(prefix="patchkit-verify-") as folder:
            write_tree(verifying.source, tree, Path(folder))
            problem, output = _run(step, Path(folder) / step.directory)
            output = output.replace(f"{folder}/", "")
        if problem:
            what = f"{title_of(step)}: {problem}" + (f": {output}" if output else "")
            yield Finding(Severity.ERROR, "verify-run", what, str(step.where))


def not_run_findings(steps: Sequence[RunStep]) -> Iterator[Finding]:
    """A note for each command that is not run."""
    for step in steps:
        what = f"not run: {title_of(step)}"
        hint = "read it, then `patchkit check --run`"
        yield Finding(Severity.NOTE, "verify-not-run", what, str(step.where), hint)


def write_tree(source: Overlay, tree: str, folder: Path) -> None:
    """Write a tree's files and symbolic links into an empty folder; submodules stay empty."""
    files = Terrain(source, tree).files()
    kinds = (FILE_MODE, EXECUTABLE_MODE, SYMLINK_MODE)
    wanted = {path: entry for path, entry in files.items() if entry.mode in kinds}
    blobs = dict(source.read_many(sorted({each.oid for each in wanted.values()}), "blob"))
    links: list[tuple[Path, bytes]] = []
    for name, entry in wanted.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.mode == SYMLINK_MODE:
            links.append((path, blobs[entry.oid]))
        else:
            path.write_bytes(blobs[entry.oid])
            path.chmod(0o755 if entry.mode == EXECUTABLE_MODE else 0o644)
    for path, target in links:  # last: nothing is written through one
        path.symlink_to(os.fsdecode(target))


def _run(step: RunStep, folder: Path) -> tuple[str, str]:
    """(what went wrong, the last lines that it printed); ("", "") if the command passes."""
    with TemporaryFile() as output:  # a pipe would keep us as long as anything it started lives
        try:
            process = subprocess.Popen(
                ["sh", "-e", "-c", step.run],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return f"cannot be started: {error.strerror}", ""
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return f"does not end within {PATIENCE:.0f} seconds", ""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if code == 0:
            return "", ""
        output.seek(0)
        lines = lines_of(output.read().decode("utf-8", "replace").strip())[-_LINES:]
        return f"exits with {code}", " / ".join(lines)
