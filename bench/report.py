"""Measure the HTML report on made-up histories: how large it is, how soon a browser shows it.

    python -m bench.report [--commits 2000] [--patches 100] [--states 20] [--output FILE]
    python -m bench.report --page FILE          measure a report that is there

`--states` is how often at most a patch's state changes. The browser is headless Chromium, opened
five times; from opening the file to the first paint and to the complete page, in milliseconds.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

from patchkit.drift.drift_report import (
    Break,
    HunkFault,
    Interval,
    PatchDrift,
    PatchForecast,
    Risk,
)
from patchkit.errors import ExitCode
from patchkit.explain.explanation import (
    Cause,
    FileExplanation,
    HunkExplanation,
    Mismatch,
    Origin,
    PatchExplanation,
)
from patchkit.model.finding import Landed
from patchkit.model.objects import CommitId
from patchkit.model.outcome import Preimage, Reason, Status
from patchkit.model.similarity import SimilarLines
from patchkit.ops.drift import ComponentDrift, DriftReport
from patchkit.report.findings import drift_outcomes
from patchkit.report.html_page import report_page

_ROUNDS = 5
_START = datetime(2025, 11, 18, 9, tzinfo=timezone.utc)
_PAGE = "https://forge.example/lab/engine"
_AREAS = (
    "attention",
    "scheduler",
    "rollout",
    "checkpoint",
    "router",
    "profiler",
    "launch",
    "memory",
)
_VERBS = ("Rework", "Speed up", "Fix", "Split", "Move", "Test", "Type", "Simplify")
_TIMES = """<script>addEventListener("load", () => {
const n = performance.getEntriesByType("navigation")[0];
const p = performance.getEntriesByName("first-contentful-paint")[0];
document.title = "MEASURED " + [p ? p.startTime : 0, n.domComplete,
document.querySelectorAll("*").length].map(Math.round).join(" ");
})</script>"""


class History:
    """Commits and patches that were drawn by lot, the same for the same numbers."""

    def __init__(self, commits: int, states: int) -> None:
        self._lot = random.Random(7)
        self._states = states
        self.line = tuple(self._landed(number, commits) for number in range(commits + 1))

    def _landed(self, number: int, commits: int) -> Landed:
        oid = f"{self._lot.getrandbits(160):040x}"
        when = _START + timedelta(days=250 * number / commits, hours=self._lot.random() * 4)
        subject = f"{self._lot.choice(_VERBS)} the {self._lot.choice(_AREAS)} part (#{number + 90})"
        author = f"Author {self._lot.randrange(40)}"
        date, link = when.strftime("%Y-%m-%dT%H:%M:%SZ"), f"{_PAGE}/commit/{oid}"
        return Landed(
            CommitId(oid), date, author, subject, number + 90, link, f"{_PAGE}/pull/{number + 90}"
        )

    def patch(self, number: int) -> PatchDrift:
        """A patch with its states."""
        name = f"{_AREAS[number % len(_AREAS)]}-on-npu{f'-{number}' if number > 7 else ''}.patch"
        runs = self._runs(f"engine/{_AREAS[number % len(_AREAS)]}.py")
        end, breaks = runs[-1], _breaks(runs)
        broken = breaks[-1].by if breaks and breaks[-1].mended is None else None
        start = next((at for at, each in enumerate(self.line) if each is broken), 0)
        return PatchDrift(
            name=name,
            where=f"patches/engine/{name}",
            at_pin=Status.UNCHANGED,
            status=end.status,
            since=end.since,
            last_good=self.line[start - 1] if broken is not None else None,
            broken_by=broken,
            days=start * 250 // len(self.line) if broken is not None else None,
            absorbed_by=end.since if end.status is Status.ABSORBED else None,
            breaks=breaks,
            risk=Risk(len(runs) * 3, round(len(runs) / 3, 1)),
            intervals=runs,
            hunks=4,
            explanation=_clash(name) if broken is not None else None,
            forecast=_forecast(end.status) if broken is not None else None,
        )

    def _runs(self, path: str) -> tuple[Interval, ...]:
        last = len(self.line)
        count = self._lot.randint(0, min(self._states, last - 2))
        marks = [0, *sorted(self._lot.sample(range(1, last - 1), count)), last]
        return tuple(self._walk(marks, path))

    def _walk(self, marks: Sequence[int], path: str) -> list[Interval]:
        runs: list[Interval] = []
        status = Status.UNCHANGED
        for first, end in pairwise(marks):
            clashes = status in (Status.CONFLICTED, Status.MERGED)
            faults = (HunkFault(path, 1, 9, Reason.CONTEXT),) if clashes else ()
            since = self.line[first] if first else None
            runs.append(Interval(status, first, end - 1, since, faults))
            others = [Status.UNCHANGED, Status.SHIFTED, Status.SHIFTED, Status.MERGED]
            others += [Status.CONFLICTED] + [Status.ABSORBED] * (self._lot.random() < 0.1)
            status = self._lot.choice([each for each in others if each is not status])
        return runs


def main() -> None:
    options = _arguments()
    page: Path | None = options.page
    if page is None:
        report = made_up(options.commits, options.patches, options.states)
        begun = time.process_time()
        text = report_page("patchkit drift", report, drift_outcomes(report), "made up")
        print(f"made in          {time.process_time() - begun:6.2f} s of CPU time")
        runs = sum(len(patch.intervals) for patch in report.components[0].patches)
        print(f"runs of a state  {runs:6}")
        page = options.output or Path(tempfile.mkdtemp()) / "report.html"
        page.write_text(text, encoding="utf-8")
    print(f"file             {page.stat().st_size / 1e6:6.2f} MB")
    paint, complete, nodes = _measured(page)
    if paint:  # the browser tells of one that comes before the page is complete
        print(f"first paint      {paint:6.0f} ms")
    print(f"complete         {complete:6.0f} ms, {nodes:.0f} elements")


def made_up(commits: int, patches: int, states: int) -> DriftReport:
    """A report on one component."""
    history = History(commits, states)
    told = tuple(history.patch(number) for number in range(patches))
    line = history.line
    component = ComponentDrift(
        manifest="made-up",
        name="engine",
        pin=line[0].commit,
        exit_code=ExitCode.FINDING,
        ref="main",
        fork=line[0].commit,
        start=line[0],
        tip=line[-1],
        commits=commits,
        touching=commits // 4,
        patches=told,
        line=line,
    )
    return DriftReport((component,))


def _breaks(runs: Sequence[Interval]) -> tuple[Break, ...]:
    found: list[Break] = []
    start: Interval | None = None
    for run in runs:
        if run.status in (Status.CONFLICTED, Status.MERGED):
            start = start or run
        elif start is not None:
            found.append(Break(start.since, run.since, False, start.faults))
            start = None
    if start is not None:
        found.append(Break(start.since, None, False, start.faults))
    return tuple(found)


def _forecast(status: Status) -> PatchForecast:
    left = ("engine/one.py",) if status is Status.CONFLICTED else ()
    return PatchForecast("", status, left, ("engine/other.py",))


def _clash(name: str) -> PatchExplanation:
    path = f"engine/{name.partition('-')[0]}.py"
    one = Mismatch(
        (b"    device = torch.device(config.kind)\n", b"    return Engine(device, config)\n"),
        (12, 13),
        (b"    device = pick_device(config)\n", b"    return Engine(device, config, pool)\n"),
        88,
    )
    two = Mismatch((), (), (b"    pool = Pool(config.memory)\n",), 95)
    place = SimilarLines(86, 96, 0.71)
    hunk = HunkExplanation(1, 9, 74, Cause.CHANGED, path, place, (one, two))
    file = FileExplanation(path, Reason.CONTEXT, Preimage.DIFFERS, 5, "", False, 2, (hunk,), ())
    return PatchExplanation(name, False, (file,), Origin(0, ()))


def _measured(page: Path) -> tuple[float, float, float]:
    """The median of each figure that the browser gives."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    assert program is not None, "there is no Chromium here"
    text = page.read_text(encoding="utf-8")
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text, count=1)
    found: list[tuple[float, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "page.html"
        copy.write_text(text.replace("</body>", f"{_TIMES}</body>"), encoding="utf-8")
        for _ in range(_ROUNDS):
            found.append(_opened(program, copy))
    paint, complete, nodes = (statistics.median(each) for each in zip(*found, strict=True))
    return paint, complete, nodes


def _opened(program: str, page: Path) -> tuple[float, ...]:
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"]
    command += [f"--user-data-dir={page.parent / 'browser'}", "--dump-dom", page.as_uri()]
    dom = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    measured = re.search(r"<title>MEASURED ([\d ]+)", dom)
    assert measured is not None
    return tuple(map(float, measured[1].split()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--commits", type=int, default=2000)
    parser.add_argument("--patches", type=int, default=100)
    parser.add_argument("--states", type=int, default=20)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--page", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
