"""The figures of a run as Markdown, put between the marks of docs/evidence.md."""

from __future__ import annotations

from collections import Counter

from bench.corpora.applying import Found
from bench.corpora.judging import BOTH, NEITHER, ORDER, Judged, as_git
from bench.figures import today


def suite_section(found: Judged, suite: str, program: str) -> list[str]:
    """A suite: how many cases of how many scripts, and what differs."""
    scripts = {script for script, _ in found.cases}
    counts = ", ".join(f"{outcome} {found.sum(outcome)}" for outcome in ORDER if found.sum(outcome))
    text = [
        f"{today()}, {suite}, {program}: **{found.total()} distinct cases** from {len(scripts)}"
        f" scripts: {counts}.",
    ]
    if found.unheld:
        text.append(f"Left out: {found.unheld} whose files git itself holds in no index.")
    if found.differ:
        text.append(_differences(found))
    return text


def _differences(found: Judged) -> str:
    rows = Counter(
        (outcome, why or "-", "yes" if as_git(case, strip) else "**no**")
        for case, strip, outcome, why in found.differ
    )
    table = ["| | why | cases | as `git apply` |", "| --- | --- | --- | --- |"]
    for (outcome, why, same), count in sorted(rows.items()):
        table.append(f"| {outcome} | {why} | {count} | {same} |")
    return "\n".join(table)


def slime_section(found: Found, clone: str) -> list[str]:
    """Published sets: counts, and each one that does not apply at the pin recorded for it."""
    text = [
        f"{today()}, slime {clone}: **{found.total()} sets**, the same verdict and the same tree"
        f" as `git apply` in {found.total() - len(found.differ)}.",
    ]
    table = ["| pin | sets | apply | refused |", "| --- | --- | --- | --- |"]
    for source in ("recorded", "of that day"):
        applied, refused = found.counts[source, BOTH], found.counts[source, NEITHER]
        table.append(f"| {source} | {applied + refused} | {applied} | {refused} |")
    text.append("\n".join(table))
    text.append(
        f"Not judged: {found.unpinned} without a pin that a clone has, {found.lacking} whose blobs"
        f" the clones lack. {found.other} of those that apply were made against other files than"
        " those at their pin; `check` says so."
    )
    text += ["Refused at a recorded pin:", _refusals(found)]
    if found.differ:
        text += ["**Other than git:**", "\n".join(f"- {each}" for each in found.differ)]
    return text


def _refusals(found: Found) -> str:
    table = ["| slime | date | folder | pin | why |", "| --- | --- | --- | --- | --- |"]
    for each, why in found.refused:
        if each.source == "recorded":
            pin = f"{each.component} {each.pin[:9]}"
            table.append(f"| {each.commit} | {each.date} | {each.folder} | {pin} | {why} |")
    return "\n".join(table)
