"""What a run found, as a file: versions, figures, comparisons; and two such files side by side."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import json
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulate import running, workspaces
from simulate.steps import Against

FORMAT = 1
RENDERED = workspaces.PROJECT / "rendered"
_PACKAGES = ("torch", "torch_npu", "npusim", "transformers", "numpy", "ray", "triton")


@dataclasses.dataclass
class Report:
    """The report in the making; `steps` by title."""

    device: str
    steps: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    manifests: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)

    def add(self, outcome: running.Outcome, compared: list[dict[str, Any]]) -> bool:
        """Record a step; whether it passed and all its figures are equal."""
        good = outcome.passed and all(each["equal"] for each in compared)
        self.steps[outcome.step.title] = {
            "status": "passed" if good else "failed",
            "seconds": round(outcome.seconds, 1),
            "figures": outcome.figures or {},
            "compared": compared,
            **({} if outcome.passed else {"log": outcome.log[-4000:]}),
        }
        return good

    def write(self, path: Path, folder: Path) -> None:
        """The file; `folder` has the checkouts, whose commits are recorded."""
        for manifest in sorted({each.name for each in folder.iterdir() if each.is_dir()}):
            self.manifests[manifest] = workspaces.commits(manifest, folder)
        here = {
            normal_name(each.metadata["Name"]): each.version
            for each in importlib.metadata.distributions()
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            json.dumps(
                {
                    "format": FORMAT,
                    "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
                    "device": self.device,
                    "simulated": self.device == "npu" and not running.real_npu(),
                    "versions": _versions(),
                    "not as locked": {name: not_as_locked(name, here) for name in self.manifests},
                    "checkouts": self.manifests,
                    "steps": self.steps,
                },
                indent=2,
            )
            + "\n"
        )


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def locked(manifest: str) -> list[tuple[str, str]]:
    """What the shipped lock of a stack has, name and version; [] without a lock."""
    return [
        each
        for lock in (RENDERED / manifest).glob("requirements-*.txt")
        for each in re.findall(r"(?m)^([^#\s=]+)==(\S+)", lock.read_text())
    ]


def not_as_locked(manifest: str, installed: Mapping[str, str]) -> dict[str, str]:
    """What the shipped lock of a stack has in other versions: name -> both; {} without a lock.

    installed: version by normal name.
    """
    return {
        name: f"{installed.get(name, 'none')}, not {version}"
        for name, version in locked(manifest)
        if installed.get(name) != version
    }


def normal_name(name: str) -> str:
    """A package's name as locks have it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def side_by_side(a: Path, b: Path, how: Against) -> tuple[list[str], bool]:
    """Lines that say what differs between two reports, and whether nothing does."""
    first, second = (json.loads(path.read_text()) for path in (a, b))
    lines, equal = [], True
    for report, path in ((first, a), (second, b)):
        if report.get("format") != FORMAT:
            return [f"{path}: format {report.get('format')}, expected {FORMAT}"], False
    for kind in ("device", "simulated"):
        lines.append(f"{kind}: {first[kind]}, {second[kind]}")
    for title in first["steps"]:
        if title not in second["steps"]:
            lines.append(f"{title}: only in {a}")
            continue
        one, other = (report["steps"][title] for report in (first, second))
        if not one["figures"] or not other["figures"]:
            lines.append(f"{title}: {one['status']}, {other['status']}: no figures to compare")
            equal = False
            continue
        for each in running.compare(one["figures"], other["figures"], how):
            word = "equal" if each.equal else "differs"
            lines.append(f"{title}: {each.name}: {word}, at most {each.worst:.3g}")
            equal = equal and each.equal
    lines += [f"{title}: only in {b}" for title in second["steps"] if title not in first["steps"]]
    return lines, equal
