"""Every state that is reported, in one table: its word, sign, colour and how much it matters.

Terminal, Markdown and HTML read how a state is shown from here, findings how much it matters.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class Level(str, Enum):
    """How much a state or a finding matters, from most to least; the first three are SARIF's."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    FINE = "fine"
    FAINT = "faint"  # nothing was done or looked at


#: The height of a row of a timeline; bands are counted from its top.
ROW = 20


class State(Struct, frozen=True):
    """One state.

    `key` names its colour in the style sheet of pages. A timeline draws `bands`, the filled parts
    of a row's height: a commit may be less than a pixel wide, so that no pattern survives, but
    height does. The worse the state, the taller.
    """

    word: str
    sign: str  # one character
    level: Level
    key: str
    means: str = ""  # a sentence on a patch in it
    effort: int = 0  # how much there is to do about a patch in it
    bands: tuple[tuple[int, int], ...] = ()


#: Those of a patch on a base, in the order of a legend, and of drawing: what must be seen is last.
PATCH_STATES = (
    State("empty", "·", Level.FAINT, "empty", "changes no file", 0, ((18, ROW),)),
    State("unchanged", "✓", Level.FINE, "applies", "every hunk at its line", 0, ((14, ROW),)),
    State("shifted", "≈", Level.FINE, "offsets", "fits, at other lines", 0, ((11, ROW),)),
    State(
        "regenerated", "↻", Level.NOTE, "anew", "its recipe regenerates it", 1, ((4, 8), (11, ROW))
    ),
    State("merged", "~", Level.WARNING, "merges", "a bump carries it", 2, ((7, ROW),)),
    State("absorbed", "-", Level.WARNING, "absorbed", "upstream has it", 3, ((0, 4), (16, ROW))),
    State(
        "waiting",
        "!",
        Level.WARNING,
        "empty",
        "fails as an earlier patch conflicts",
        4,
        ((2, 6), (9, 13), (16, ROW)),
    ),
    State("conflicted", "✗", Level.ERROR, "conflicts", "a hunk fails", 5, ((0, ROW),)),
)

_GOOD = (
    # what was done
    *("undone", "redone", "applied", "created", "moved", "ok", "cached", "fetched", "written"),
    *("fresh", "refreshed", "carried", "imported", "exported", "reversed"),
    # a test of upstream's, a state of a search and its answer
    *("mended", "learnt", "passed", "good", "never"),
    # an installed package; code that another component replaces; a call
    *("live", "settled", "same", "bound", "reviewed"),
)
_BAD = (
    # a checkout, what was done
    *("other branch", "interrupted", "differs", "foreign", "refused", "failed"),
    # a test of upstream's, a state of a search and its answer, an installed package
    *("broken", "bad", "found", "always", "not live", "partly live"),
    # code that another component replaces
    *("gone", "not there", "signature"),
    # a call from one component into another
    *("missing module", "missing package", "missing name", "wrong arguments"),
    *("crossed arguments", "names nothing", "wrong", "error"),
)
_TO_SEE = (
    *("flagged", "resolved", "changed", "message", "content", "not learnt"),
    *("body", "expired", "warning"),
)
_FAINT = (
    *("skipped", "missing", "unpatched", "absent", "held"),
    *("declared", "explained", "note", "known"),
)

#: The words of several enums, which share a sign, a level and a colour on pages.
_ALIKE = (
    ("✓", Level.FINE, "applies", _GOOD),
    ("✗", Level.ERROR, "conflicts", _BAD),
    ("!", Level.WARNING, "merges", _TO_SEE),
    ("·", Level.FAINT, "empty", _FAINT),
    ("~", Level.WARNING, "offsets", ("edited", "extra commits", "stale", "context")),
    ("-", Level.WARNING, "absorbed", ("left out", "leftover", "reinstalled")),
    ("-", Level.ERROR, "absorbed", ("dropped", "removed")),
    ("+", Level.FINE, "applies", ("added",)),
    ("+", Level.WARNING, "merges", ("new",)),
    ("?", Level.ERROR, "conflicts", ("unknown",)),
    (
        "?",
        Level.WARNING,
        "merges",
        ("ambiguous", "among", "as its receipt says", "uncertain", "open"),
    ),
)

#: Every state by its word. Equal words mean equal things.
_STATES = {state.word: state for state in PATCH_STATES} | {
    word: State(word, sign, level, key) for sign, level, key, words in _ALIKE for word in words
}


def state_of(status: Enum | str) -> State:
    """The row of a member of one of the enums of states, or of its word."""
    return _STATES[str(status.value) if isinstance(status, Enum) else status]
