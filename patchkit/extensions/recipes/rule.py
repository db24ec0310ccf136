"""What a recipe says, as values, and with that what it may say: its keys are declared as those of
manifests are (manifest/types.py).
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.manifest.globs import Glob, Scope, check_glob
from patchkit.manifest.types import (
    ByForm,
    Complaint,
    Field,
    Key,
    Later,
    ListOf,
    Number,
    OneOf,
    Prose,
    Reason,
    Record,
    Text,
    also,
)
from patchkit.manifest.values import Location

if TYPE_CHECKING:
    from ast_grep_py import SgNode


# The languages that rules can be written for, and how their files end.


#: ast-grep's name -> endings of files. Others that ast-grep knows are left out: nobody tried them.
LANGUAGES: dict[str, tuple[str, ...]] = {
    "python": (".py", ".pyi"),
    "bash": (".sh", ".bash"),
    "c": (".c", ".h"),
    "cpp": (".cc", ".cpp", ".cxx", ".h", ".hpp", ".hh", ".cu", ".cuh"),
    "go": (".go",),
    "java": (".java",),
    "javascript": (".js", ".mjs", ".cjs"),
    "json": (".json",),
    "rust": (".rs",),
    "typescript": (".ts",),
    "yaml": (".yml", ".yaml"),
}

#: Where the rest of a line after # is a comment.
HASH_COMMENTS = frozenset({"python", "bash", "yaml"})


# What a rule on code finds: ast-grep's own rules, as plain data.


def _one_of(what: str, *words: str) -> Text:
    return Text(what, "|".join(words), example=words[0])


_KIND = Text("a kind of node", r"[A-Za-z_][A-Za-z0-9_]*", example="decorator")
_RULE_NAME = Text("a rule's name", r"[A-Za-z0-9_-]+")
_SNIPPET = Text("code", lines=True, code=True)
_POSITION = Text(
    "a position",
    r"[0-9]*n?(?: *[-+] *[0-9]+)?|odd|even",
    number=True,
    meant=lambda text, _: int(text) if re.fullmatch(r"[0-9]{1,9}", text) else text,
)
_INNER = Later("rule", lambda: RULE)
_RELATED = Later("relation", lambda: RELATION)

_PATTERN = ByForm(
    "a pattern",
    scalar=_SNIPPET,
    table=Record(
        "pattern with context",
        (
            Field(
                "context", _SNIPPET, "Code around the pattern that makes it parse.", required=True
            ),
            Field("selector", _KIND, "The kind of node within it that is the pattern."),
            Field(
                "strictness",
                _one_of("a strictness", "cst", "smart", "ast", "relaxed", "signature"),
                "How exactly code must be like the pattern.",
                default="smart",
            ),
        ),
        "A pattern that needs code around it to be understood.",
    ),
)
_NTH = ByForm(
    "a position among siblings",
    scalar=_POSITION,
    table=Record(
        "position",
        (
            Field("position", _POSITION, "A number, or An+B.", required=True),
            Field("ofRule", _INNER, "Count only siblings that the rule matches."),
        ),
        "A position among siblings.",
    ),
)

RULE: Record = Record(
    "rule",
    (
        Field("pattern", _PATTERN, "Code with variables: $NAME is one node, $$$NAME any number."),
        Field("kind", _KIND, "The kind of node, as the language's tree-sitter grammar names it."),
        Field(
            "regex",
            Text("text", lines=True),
            "A regular expression (Rust's) that the node's text has.",
        ),
        Field("nthChild", _NTH, "Its position among its siblings."),
        Field("inside", _RELATED, "It stands within such a node."),
        Field("has", _RELATED, "Such a node stands within it."),
        Field("follows", _RELATED, "It stands behind such a node."),
        Field("precedes", _RELATED, "It stands before such a node."),
        Field("all", ListOf(_INNER), "All of these rules hold."),
        Field("any", ListOf(_INNER), "One of these rules holds."),
        Field("not", _INNER, "This rule does not hold."),
        Field("matches", _RULE_NAME, "The rule of `utils` holds."),
    ),
    "Every key that is given must hold; ast-grep's own keys.",
)
RELATION: Record = Record(
    "relation",
    (
        *RULE.fields,
        Field(
            "stopBy",
            ByForm(
                "neighbor, end or a rule",
                scalar=_one_of("neighbor or end", "neighbor", "end"),
                table=_INNER,
            ),
            "How far to look: at the next node only, to the end, or up to a node that a rule "
            "matches.",
            default="neighbor",
        ),
        Field("field", _KIND, "The field of the outer node that the inner one is."),
    ),
    "A rule on another node, and where to look for it.",
)


# What stands in a recipe's file.


def check_expect(text: str) -> Complaint | None:
    """What is wrong with an expectation."""
    if re.fullmatch(r"(?:>= ?)?[0-9]{1,9}", text):
        return None
    return Complaint("is no count", 'write a number, or ">= 1" in quotes')


def check_language(text: str) -> Complaint | None:
    """What is wrong with a language's name."""
    if text in LANGUAGES:
        return None
    return Complaint("is not among the languages", f"one of {', '.join(LANGUAGES)}")


class Expect(Struct, frozen=True):
    """How many sites a rule must find: `minimum`, or at least so many."""

    minimum: int
    exact: bool  # no more than `minimum`

    def holds(self, count: int) -> bool:
        """Whether `count` sites are as expected."""
        return count == self.minimum if self.exact else count >= self.minimum

    def __str__(self) -> str:
        return f"{self.minimum}" if self.exact else f">= {self.minimum}"


_Code = Annotated[str, Text("code", lines=True)]
_Remainder = Annotated[str, Text("code", lines=True, empty=True)]
_Id = Annotated[
    str,
    Text("a rule's id", r"[a-z0-9]+(?:-[a-z0-9]+)*", example="drop-jit-fuser"),
    "What messages call the rule.",
    also("name"),
]
_Matcher = Annotated[Mapping[str, Any], _INNER]


class Allowance(Struct, frozen=True):
    """Sites that a rule leaves alone."""

    files: Annotated[
        Scope,
        Text("a glob", check=check_glob, meant=lambda text, _: Scope((text,))),
        Key("path"),
        "The file, or a glob.",
        also("file", "files"),
    ]
    reason: Annotated[Reason, "Why these sites stay as they are."]
    where: Location  # the entry in the recipe's file
    within: Annotated[
        str, Text("a qualified name"), "The function or class, as in `Outer.method`."
    ] = ""
    text: Annotated[
        str,
        Text("code", lines=True, meant=lambda text, _: text.strip("\n")),
        "A part of the site's text.",
    ] = ""


class Example(Struct, frozen=True):
    """What `patchkit check --only recipes` runs."""

    before: Annotated[_Code, "A piece of code."]
    where: Location  # the entry in the recipe's file
    after: Annotated[_Remainder | None, Key(default="the same"), "What the rule makes of it."] = (
        None
    )
    sites: Annotated[
        Annotated[int, Number(0, 10_000)] | None, "How many sites the rule finds in it."
    ] = None


class _Rule(Struct, frozen=True, kw_only=True):
    where: Annotated[Location, Key("id")]
    description: Annotated[Prose, "What the rule is for."] = ""
    files: Annotated[
        tuple[Glob, ...],
        "The files to look at. A rule on code passes over those whose names do not end as its "
        "language's do, unless they are named in full.",
        also("file", "paths", "include"),
    ]
    ignores: Annotated[
        tuple[Glob, ...], "Files among them to leave out.", also("ignore", "exclude")
    ] = ()
    expect: Annotated[
        Expect,
        Text(
            "a count",
            r"(?:>= ?)?[0-9]+",
            check_expect,
            number=True,
            meant=lambda text, _: Expect(int(text.removeprefix(">=")), not text.startswith(">")),
        ),
        Key(default=">= 1"),
        'How many sites: a number, or ">= 1".',
        also("count"),
    ] = Expect(1, exact=False)
    optional: Annotated[Reason, "Why none of its files need be there."] = ""
    allow: Annotated[tuple[Allowance, ...], "Sites to leave alone; they do not count."] = ()
    examples: Annotated[
        tuple[Example, ...], "What the rule does, to be tested.", also("tests", "example")
    ] = ()

    @property
    def scope(self) -> Scope:
        """The files that it looks at."""
        return Scope(self.files, self.ignores, self._endings)

    @property
    def _endings(self) -> tuple[str, ...]:
        return ()


class CodeRule(_Rule, frozen=True, kw_only=True):
    """A rule on code, by its syntax.

    Without `fix` and `remove` it only looks.
    """

    id: _Id
    language: Annotated[
        str,
        Text("a language", "|".join(LANGUAGES), check_language, example="python"),
        f"One of {', '.join(LANGUAGES)}.",
        also("lang"),
    ]
    rule: Annotated[_Matcher, "What to find: ast-grep's own rule."]
    constraints: Annotated[
        Mapping[
            Annotated[
                str, Text("a variable's name, without $", r"[A-Z_][A-Z0-9_]*", example="NAME")
            ],
            _Matcher,
        ],
        "Rules that hold for what a variable of the pattern stands for.",
    ] = {}
    utils: Annotated[
        Mapping[Annotated[str, _RULE_NAME], _Matcher], "Rules by name, for `matches`."
    ] = {}
    fix: Annotated[
        Annotated[str, Text("code", lines=True, empty=True, code=True)] | None,
        'What takes its place, with the variables of the pattern; "" deletes it. Further lines '
        "are set in like the line that the match starts in. A rule without `fix` and `remove` "
        "only looks.",
        also("replace", "replacement", "rewrite"),
    ] = None
    remove: Annotated[
        str,
        _one_of("lines", "lines"),
        "Instead of `fix`: remove the whole lines that the match stands in.",
        also("delete"),
    ] = ""

    @property
    def edits(self) -> bool:
        """Whether it changes what it finds."""
        return self.fix is not None or self.remove != ""

    @property
    def _endings(self) -> tuple[str, ...]:
        return LANGUAGES[self.language]


_REPLACED = also("fix", "with")


class TextRule(_Rule, frozen=True, kw_only=True):
    """A rule on text: `find` as it is, or a regular expression if `is_regex`.

    In a regular expression `^` and `$` match at every line, and `replace` may name groups.
    """

    id: str
    find: str
    replace: str
    is_regex: bool = False

    @property
    def edits(self) -> bool:
        """Whether it changes what it finds."""
        return True


class FindRule(TextRule, frozen=True, kw_only=True):
    """A rule on text that stands as it is written."""

    find: Annotated[_Code, "The text to find, as it is."]
    replace: Annotated[_Remainder, "What takes its place.", _REPLACED]
    id: _Id


class RegexRule(TextRule, frozen=True, kw_only=True):
    """A rule on text by a regular expression."""

    find: Annotated[
        str,
        Text("a regular expression", lines=True),
        Key("regex"),
        "A regular expression, as Python's re has them; ^ and $ match at every line.",
    ]
    replace: Annotated[
        _Remainder, r"What takes its place; \1 and \g<name> are its groups.", _REPLACED
    ]
    id: _Id
    is_regex: bool = True


Rule = CodeRule | TextRule

#: The version of the format that this program reads.
FORMAT_VERSION = 1


class RecipeRules(Struct, frozen=True, kw_only=True):
    """What a recipe says; see run.py."""

    path: Path
    version: Annotated[int, Number(FORMAT_VERSION, FORMAT_VERSION), "The format: 1."]
    description: Annotated[
        str,
        Text("text", lines=True, meant=lambda text, _: text.strip("\n")),
        "The message of a patch that is generated for the first time: a subject line, an empty "
        "line, the reason. Afterwards the text above the diff is yours.",
        also("message", "subject"),
    ]
    rules: Annotated[tuple[CodeRule, ...], "Rules on code, by its syntax."] = ()
    texts: Annotated[
        tuple[Annotated[TextRule, OneOf("text rule", (FindRule, RegexRule))], ...],
        Key("text"),
        "Rules on files that are no code, or none of these languages.",
        also("texts", "replacements"),
    ] = ()

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """Every rule, in the order of the file."""
        return tuple(sorted((*self.rules, *self.texts), key=lambda rule: rule.where.line))

    def covers(self, path: str) -> bool:
        """Whether any rule looks at a file of that path."""
        return any(rule.scope.covers(path) for rule in self.all_rules)


# What a rule may cost: neither who writes recipes nor who writes an upstream decides on that.
#
# A rule that looks along the tree costs its depth for each place where it looks, once more for
# each look inside a look; what rules refer to by name may double at every step. Sites inside each
# other hold each other's text. All of it is linear, or small, in what people write.


#: Parts of a rule, with what it refers to written out.
MOST_PARTS = 20_000
#: How deep a file may nest for a rule with so many looks inside each other; more are refused. A
#: neighbour costs the depth, too: trees are walked from their root to find it.
DEEPEST = {1: 3000, 2: 500, 3: 150}
#: Characters of all sites of a rule in one file, and steps from them to the top of its tree.
MOST_TEXT, MOST_STEPS = 1 << 26, 2_000_000

_LOOKS = ("inside", "has", "follows", "precedes")
_HINT_FILE = "take the file out with `ignores`"


def require_bounded(rule: CodeRule) -> int:
    """How many looks a rule has inside each other; BadInputError if it is too large."""
    known: dict[str, tuple[int, int]] = {}
    whole = {"all": [rule.rule, *rule.constraints.values()]}
    parts, looks = _size(whole, rule.utils, known, frozenset())
    if parts > MOST_PARTS:
        what = f"{rule.id}: with the rules that it refers to, it has more than {MOST_PARTS} parts"
        raise BadInputError(Problem(what, str(rule.where), "refer to fewer rules in a row"))
    if looks > max(DEEPEST):
        what = f"{rule.id}: {looks} relations with stopBy inside each other, more than 3"
        raise BadInputError(Problem(what, str(rule.where), "put them side by side, with `all`"))
    return looks


def require_shallow(rule: CodeRule, looks: int, path: str, root: "SgNode") -> None:
    """BadInputError for a file that nests too deep for a rule; `root` is its tree."""
    most = DEEPEST.get(looks)
    if most is not None and nests_deeper(root, root.range().end.index, most):
        what = f"{path} nests more than {most} deep, too much for {rule.id}"
        raise BadInputError(Problem(what, str(rule.where), _HINT_FILE))


#: So many levels, at most, each character of a file adds to its tree.
_LEVELS = 4


def nests_deeper(root: "SgNode", size: int, most: int) -> bool:
    """Whether a tree of so many characters has more than `most` levels."""
    # Invariant: `level` has all nodes at `depth` under which there may be a level beyond `most`:
    # those with too few characters for that are left out, which are nearly all.
    level, depth = [root] if size * _LEVELS > most else [], 1
    while level and depth <= most:
        children = [child for node in level for child in node.children()]
        level = [each for each in children if len(each.text()) * _LEVELS >= most - depth]
        depth += 1
    return bool(level)


def require_apart(rule: CodeRule, path: str, *, text: int, steps: int) -> None:
    """BadInputError if the sites of a rule lie inside each other by the thousand."""
    if text > MOST_TEXT or steps > MOST_STEPS:
        what = f"{rule.id}: too many sites inside each other in {path}"
        raise BadInputError(Problem(what, str(rule.where), _HINT_FILE))


def require_small(rule: Rule, path: str, size: int) -> None:
    """BadInputError if what a rule puts into one file has more characters than any file should."""
    if size > MOST_TEXT:
        what = f"{rule.id}: what it writes into {path} is too large"
        raise BadInputError(Problem(what, str(rule.where), _HINT_FILE))


def _size(
    rule: object, utils: Mapping[str, Any], known: dict[str, tuple[int, int]], seen: frozenset[str]
) -> tuple[int, int]:
    """(parts, looks inside each other) of a rule or a part of one."""
    if isinstance(rule, tuple | list):
        sizes = [_size(each, utils, known, seen) for each in rule]
        return 1 + sum(parts for parts, _ in sizes), max((looks for _, looks in sizes), default=0)
    if not isinstance(rule, dict):
        return 1, 0
    parts, looks = 1, 0
    for key, value in rule.items():
        if key == "matches" and isinstance(value, str):
            size = _named(value, utils, known, seen)
        else:
            size = _size(value, utils, known, seen)
        far = key in _LOOKS and isinstance(value, dict) and value.get("stopBy", "") != "neighbor"
        parts += size[0]
        looks = max(looks, size[1] + (far and "stopBy" in value), key in _LOOKS)
    return parts, looks


def _named(
    name: str, utils: Mapping[str, Any], known: dict[str, tuple[int, int]], seen: frozenset[str]
) -> tuple[int, int]:
    if name in seen or name not in utils:
        return 1, 0  # ast-grep says what it makes of that
    if name not in known:
        known[name] = _size(utils[name], utils, known, seen | {name})
    return known[name]
