"""What `patchkit check` says about overrides: one finding for all targets of a kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patchkit.model.lint import Finding, Severity
from patchkit.overrides.review import Target, Verdict
from patchkit.overrides.survey import Survey

#: So many names are told, the rest is counted.
_NAMED = 3

_TOLD = {
    Verdict.GONE: (Severity.ERROR, "gone", "not there any more"),
    Verdict.NOT_THERE: (Severity.ERROR, "not-there", "not there, and no reason is given"),
    Verdict.SIGNATURE: (Severity.ERROR, "signature", "called in another way than when reviewed"),
    Verdict.BODY: (Severity.WARNING, "body", "not the code that was reviewed"),
    Verdict.NEW: (Severity.WARNING, "new", "not reviewed yet"),
}


def override_findings(found: Survey, pair: str, command: str) -> Iterator[Finding]:
    """What somebody has to look at; `pair` names the components, `command` shows the details."""
    look = f"`{command}` lists them"
    for verdict, (severity, code, what) in _TOLD.items():
        targets = [each for each in found.targets if each.verdict is verdict]
        if targets:
            are = "is" if len(targets) == 1 else "are"
            text = f"{len(targets)} of {len(found.targets)} targets {are} {what}: {_names(targets)}"
            then = "declare" if severity is Severity.ERROR and "there" in what else "accept"
            ways = {
                "accept": f"{look}, with `--accept` they count as reviewed",
                "declare": f"{look}; if one need not be there, say why under `absent:`",
            }
            yield Finding(severity, f"override-{code}", text, pair, ways[then])
    for site in found.uncertain:
        what = f"{site.text}: which name this replaces is not plain to see"
        hint = "look at it by hand; narrow the rule, or allow the site there with a reason"
        yield Finding(Severity.WARNING, "override-uncertain", what, site.place, hint)
    for declared in found.unused:
        what = f"{declared.name} is declared absent, and no target that it names is"
        where = str(declared.where)
        yield Finding(Severity.WARNING, "override-unused", what, where, "delete the declaration")


def _names(targets: Sequence[Target]) -> str:
    shown = ", ".join(each.name for each in targets[:_NAMED])
    more = len(targets) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown
