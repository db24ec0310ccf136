"""The format of recipes, declared once, in the vocabulary of manifests (manifest/types.py)."""

from __future__ import annotations

import re
import warnings

from patchkit.manifest.json_schema import record_schema
from patchkit.manifest.types import (
    ByForm,
    Choice,
    Complaint,
    Field,
    Later,
    ListOf,
    MapOf,
    Number,
    Record,
    Shape,
    Text,
)
from patchkit.recipes.bounds import LANGUAGES
from patchkit.recipes.rule import check_glob

#: The versions of the format that this program reads.
FORMAT_VERSION = 1

_PROSE = Text("text", lines=True)
_CODE = Text("code", lines=True)
_REMAINDER = Text("code", lines=True, empty=True)
_GLOB = Text("a glob", check=check_glob, example="megatron/core/**/*.py")
_ID = Text("a rule's id", r"[a-z0-9]+(?:-[a-z0-9]+)*", example="drop-jit-fuser")
_VARIABLE = Text("a variable's name, without $", r"[A-Z_][A-Z0-9_]*", example="NAME")
_KIND = Text("a kind of node", r"[A-Za-z_][A-Za-z0-9_]*", example="decorator")


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


def _check_regex(text: str) -> Complaint | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(text, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        return Complaint(f"is no regular expression: {error}", "Python's syntax")
    return None


def _one_of(what: str, *words: str) -> Text:
    return Text(what, "|".join(words), example=words[0])


def _rule() -> Shape:
    return RULE


_INNER = Later("rule", _rule)
_RULES = ListOf(_INNER, "rule")

_PATTERN = ByForm(
    "a pattern",
    scalar=_CODE,
    table=Record(
        "pattern with context",
        (
            Field("context", _CODE, "Code around the pattern that makes it parse.", required=True),
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

_STOP = Field(
    "stopBy",
    ByForm(
        "neighbor, end or a rule",
        scalar=_one_of("neighbor or end", "neighbor", "end"),
        table=_INNER,
    ),
    "How far to look: at the next node only, to the end, or up to a node that a rule matches.",
    default="neighbor",
)

_POSITION = Text("a position", r"[0-9]*n?(?: *[-+] *[0-9]+)?|odd|even", number=True)
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


def _atoms() -> tuple[Field, ...]:
    return (
        Field("pattern", _PATTERN, "Code with variables: $NAME is one node, $$$NAME any number."),
        Field("kind", _KIND, "The kind of node, as the language's tree-sitter grammar names it."),
        Field("regex", _PROSE, "A regular expression (Rust's) that the node's text has."),
        Field("nthChild", _NTH, "Its position among its siblings."),
        Field("inside", Later("relation", _relation), "It stands within such a node."),
        Field("has", Later("relation", _relation), "Such a node stands within it."),
        Field("follows", Later("relation", _relation), "It stands behind such a node."),
        Field("precedes", Later("relation", _relation), "It stands before such a node."),
        Field("all", _RULES, "All of these rules hold."),
        Field("any", _RULES, "One of these rules holds."),
        Field("not", _INNER, "This rule does not hold."),
        Field("matches", Text("a rule's name", r"[A-Za-z0-9_-]+"), "The rule of `utils` holds."),
    )


def _relation() -> Shape:
    return RELATION


RULE = Record("rule", _atoms(), "Every key that is given must hold; ast-grep's own keys.")
RELATION = Record(
    "relation",
    (*_atoms(), _STOP, Field("field", _KIND, "The field of the outer node that the inner one is.")),
    "A rule on another node, and where to look for it.",
)

_ALLOW = Record(
    "allowance",
    (
        Field("path", _GLOB, "The file, or a glob.", required=True, synonyms=("file", "files")),
        Field("reason", _PROSE, "Why these sites stay as they are.", required=True),
        Field("within", Text("a qualified name"), "The function or class, as in `Outer.method`."),
        Field("text", _CODE, "A part of the site's text."),
    ),
    "Sites that a rule leaves alone.",
)

_EXAMPLE = Record(
    "example",
    (
        Field("before", _CODE, "A piece of code.", required=True),
        Field("after", _REMAINDER, "What the rule makes of it.", default="the same"),
        Field("sites", Number(0, 10_000), "How many sites the rule finds in it."),
    ),
    "What `patchkit recipe test` runs.",
)

_EXPECT = Text("a count", r"(?:>= ?)?[0-9]+", check_expect, number=True)


def _shared() -> tuple[Field, ...]:
    return (
        Field("description", _PROSE, "What the rule is for."),
        Field(
            "files",
            ListOf(_GLOB, "glob"),
            "The files to look at. A rule on code passes over those whose names do not end as its "
            "language's do, unless they are named in full.",
            required=True,
            synonyms=("file", "paths", "include"),
        ),
        Field(
            "ignores",
            ListOf(_GLOB, "glob"),
            "Files among them to leave out.",
            synonyms=("ignore", "exclude"),
        ),
        Field(
            "expect",
            _EXPECT,
            'How many sites: a number, or ">= 1".',
            default=">= 1",
            synonyms=("count",),
        ),
        Field("allow", ListOf(_ALLOW, "allowance"), "Sites to leave alone; they do not count."),
        Field(
            "examples",
            ListOf(_EXAMPLE, "example"),
            "What the rule does, to be tested.",
            synonyms=("tests", "example"),
        ),
    )


_CODE_RULE = Record(
    "code rule",
    (
        Field("id", _ID, "What messages call the rule.", required=True, synonyms=("name",)),
        Field(
            "language",
            Text("a language", "|".join(LANGUAGES), check_language, example="python"),
            f"One of {', '.join(LANGUAGES)}.",
            required=True,
            synonyms=("lang",),
        ),
        Field("rule", _INNER, "What to find: ast-grep's own rule.", required=True),
        Field(
            "constraints",
            MapOf(_VARIABLE, _INNER),
            "Rules that hold for what a variable of the pattern stands for.",
        ),
        Field(
            "utils",
            MapOf(Text("a rule's name", r"[A-Za-z0-9_-]+"), _INNER),
            "Rules by name, for `matches`.",
        ),
        Field(
            "fix",
            _REMAINDER,
            'What takes its place, with the variables of the pattern; "" deletes it. Further '
            "lines are set in like the line that the match starts in. A rule without `fix` and "
            "`remove` only looks.",
            synonyms=("replace", "replacement", "rewrite"),
        ),
        Field(
            "remove",
            _one_of("lines", "lines"),
            "Instead of `fix`: remove the whole lines that the match stands in.",
            synonyms=("delete",),
        ),
        *_shared(),
    ),
    "A rule on code, by its syntax.",
)

_REPLACE = Field(
    "replace", _REMAINDER, "What takes its place.", required=True, synonyms=("fix", "with")
)

_TEXT_RULE = Choice(
    "text rule",
    (
        Record(
            "find",
            (
                Field("find", _CODE, "The text to find, as it is.", required=True),
                _REPLACE,
                Field("id", _ID, "What messages call the rule.", required=True),
                *_shared(),
            ),
            "A rule on text that stands as it is written.",
        ),
        Record(
            "regex",
            (
                Field(
                    "regex",
                    Text("a regular expression", lines=True, check=_check_regex),
                    "A regular expression (Python's); ^ and $ match at every line.",
                    required=True,
                ),
                Field(
                    "replace",
                    _REMAINDER,
                    r"What takes its place; \1 and \g<name> are its groups.",
                    required=True,
                    synonyms=("fix", "with"),
                ),
                Field("id", _ID, "What messages call the rule.", required=True),
                *_shared(),
            ),
            "A rule on text by a regular expression.",
        ),
    ),
)

RECIPE = Record(
    "recipe",
    (
        Field("version", Number(FORMAT_VERSION, FORMAT_VERSION), "The format: 1.", required=True),
        Field(
            "description",
            _PROSE,
            "The message of a patch that is generated for the first time: a subject line, an empty "
            "line, the reason. Afterwards the text above the diff is yours.",
            required=True,
            synonyms=("message", "subject"),
        ),
        Field("rules", ListOf(_CODE_RULE, "rule"), "Rules on code, by its syntax."),
        Field(
            "text",
            ListOf(_TEXT_RULE, "rule"),
            "Rules on files that are no code, or none of these languages.",
            synonyms=("texts", "replacements"),
        ),
    ),
    "A recipe: rules from which a patch is generated.",
)


def recipe_schema() -> dict[str, object]:
    """The format as JSON Schema (draft 7)."""
    return record_schema(RECIPE, "patchkit recipe", {"rule": RULE, "relation": RELATION})
