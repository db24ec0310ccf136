"""Read a recipe and tell everything that is wrong with it at once, at file and line.

Text -> nodes -> checked against the declared format below -> rules between values ->
frozen values. Whether ast-grep takes a rule is found out when it runs (sites.py).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path

from patchkit.disk.files import read_plain
from patchkit.errors import BadInputError, Problem, first_problems
from patchkit.manifest.globs import Scope, check_glob
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
from patchkit.manifest.validate import read_file
from patchkit.manifest.values import Location
from patchkit.manifest.yaml_nodes import Items, Node, Scalar, Table
from patchkit.recipes.regex import matches
from patchkit.recipes.rule import (
    LANGUAGES,
    Allowance,
    CodeRule,
    Example,
    Expect,
    Recipe,
    TextRule,
    require_bounded,
)
from patchkit.recipes.sites import used_variables, variables_in

# The format of recipes, declared once, in the vocabulary of manifests (manifest/types.py).


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
        return Complaint(f"is not a valid regular expression: {error}", "Python's syntax")
    return None


def _one_of(what: str, *words: str) -> Text:
    return Text(what, "|".join(words), example=words[0])


def _rule() -> Shape:
    return RULE


_INNER = Later("rule", _rule)
_RULES = ListOf(_INNER)

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
            ListOf(_GLOB),
            "The files to look at. A rule on code passes over those whose names do not end as its "
            "language's do, unless they are named in full.",
            required=True,
            synonyms=("file", "paths", "include"),
        ),
        Field(
            "ignores",
            ListOf(_GLOB),
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
        Field("optional", _PROSE, "Why none of its files need be there."),
        Field("allow", ListOf(_ALLOW), "Sites to leave alone; they do not count."),
        Field(
            "examples",
            ListOf(_EXAMPLE),
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
                    "A regular expression, as Python's re has them; ^ and $ match at every line.",
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
        Field("rules", ListOf(_CODE_RULE), "Rules on code, by its syntax."),
        Field(
            "text",
            ListOf(_TEXT_RULE),
            "Rules on files that are no code, or none of these languages.",
            synonyms=("texts", "replacements"),
        ),
    ),
    "A recipe: rules from which a patch is generated.",
)


def recipe_schema() -> dict[str, object]:
    """The format as JSON Schema (draft 7)."""
    return record_schema(RECIPE, "patchkit recipe", {"rule": RULE, "relation": RELATION})


_POSITIVE = (
    *("pattern", "kind", "regex", "nthChild", "matches", "all", "any"),
    *("has", "inside", "follows", "precedes"),
)


def load_recipe(path: Path, name: str = "", *, root: Path | None = None) -> Recipe:
    """The recipe in a file; `name` is what messages call it, `root` the project that it is part of.

    Raises BadInputError with every problem.
    """
    try:
        data = read_plain(path, inside=root)
    except OSError as error:
        what = "is not there" if isinstance(error, FileNotFoundError) else str(error.strerror)
        raise BadInputError(Problem(what, name or str(path))) from error
    return parse_recipe(data, path, name)


def parse_recipe(data: bytes, path: Path, name: str = "") -> Recipe:
    """The recipe that the file's contents say."""
    shown = Path(name) if name else path
    table, _ = read_file(data, shown, RECIPE, "the recipe")
    if problems := list(_problems(table)):
        raise BadInputError(*first_problems(problems))
    return Recipe(
        path=path,
        description=table.text("description").strip("\n"),
        rules=tuple(_code_rule(each) for each in table.tables("rules")),
        texts=tuple(_text_rule(each) for each in table.tables("text")),
    )


# -- rules between values --------------------------------------------------------------------


def _problems(table: Table) -> Iterator[Problem]:
    rules = [*table.tables("rules"), *table.tables("text")]
    if not rules:
        yield Problem("no rule", str(table.where), "write `rules:` or `text:`")
    seen: dict[str, int] = {}
    for rule in rules:
        where = rule.get("id") or rule
        first = seen.setdefault(rule.text("id"), where.where.line)
        if first != where.where.line:
            what = f"{rule.text('id')} is the id of two rules, the first in line {first}"
            yield Problem(what, str(where.where), "give one of them another id")
        files = rule.get("files")
        if isinstance(files, Items) and not files.items:
            yield Problem("files is empty", str(files.where), "name at least one glob")
        for example in rule.tables("examples"):
            if example.get("after") is None and example.get("sites") is None:
                hint = "write `after:`, or how many `sites:` there are"
                yield Problem("an example that expects nothing", str(example.where), hint)
    for rule in table.tables("rules"):
        yield from _code_problems(rule)


def _code_problems(rule: Table) -> Iterator[Problem]:
    fix, remove = rule.get("fix"), rule.key("remove")
    if fix is not None and remove is not None:
        yield Problem("a rule has fix and remove", str(remove.where), "delete one of them")
    names = dict.fromkeys(rule.names("utils"))
    matcher = rule.get("rule")
    assert matcher is not None
    values = [value for _, value in rule.pairs("utils")]
    for each in (matcher, *values):
        yield from _matcher_problems(each, names)
    if isinstance(fix, Scalar):
        known = set(_variables((matcher, *values)))
        for variable in sorted(used_variables(fix.text) - known):
            hint = f"it has {', '.join(sorted(known))}" if known else "it has no variables"
            yield Problem(f"no pattern of the rule has {variable}", str(fix.where), hint)


def _matcher_problems(node: Node, utils: Collection[str]) -> Iterator[Problem]:
    """What is wrong with a rule, and with those in it."""
    if not isinstance(node, Table):
        return
    if not any(node.get(key) for key in _POSITIVE):
        what = "a rule that says only what is not" if node.entries else "an empty rule"
        yield Problem(what, str(node.where), "it needs a pattern, a kind or the like")
    for key, value in node.entries:
        if key.text == "matches" and isinstance(value, Scalar) and value.text not in utils:
            hint = (
                f"`utils` has {', '.join(islice(utils, 50))}" if utils else "write it under `utils`"
            )
            yield Problem(f"{value.text}: no such rule", str(value.where), hint)
        for inner in _inner_rules(key.text, value):
            # within `not` and relations, what is not may stand alone no more than elsewhere
            yield from _matcher_problems(inner, utils)


def _inner_rules(key: str, value: Node) -> Iterator[Node]:
    if key in ("all", "any") and isinstance(value, Items):
        yield from value.items
    elif key in ("inside", "has", "follows", "precedes", "not", "stopBy"):
        yield value
    elif key == "nthChild" and isinstance(value, Table):
        of_rule = value.get("ofRule")
        yield from () if of_rule is None else (of_rule,)


def _variables(nodes: Iterable[Node]) -> Iterator[str]:
    """The variables of all patterns in rules."""
    for node in nodes:
        if not isinstance(node, Table):
            continue
        for key, value in node.entries:
            if key.text in ("pattern", "context"):
                inner = value.get("context") if isinstance(value, Table) else value
                yield from variables_in(inner.text) if isinstance(inner, Scalar) else ()
            yield from _variables(_inner_rules(key.text, value))


# -- values ----------------------------------------------------------------------------------


def _code_rule(table: Table) -> CodeRule:
    fix = table.get("fix")
    rule = CodeRule(
        id=table.text("id"),
        language=table.text("language"),
        rule=_mapping(table.get("rule")),
        constraints=_mapping(table.get("constraints")),
        utils=_mapping(table.get("utils")),
        scope=_scope(table, LANGUAGES[table.text("language")]),
        fix=_code(fix) if isinstance(fix, Scalar) else None,
        whole_lines=table.get("remove") is not None,
        expect=_expect(table),
        allow=tuple(_allowance(each) for each in table.tables("allow")),
        examples=tuple(_example(each) for each in table.tables("examples")),
        where=_where(table),
        optional=table.text("optional").strip(),
    )
    require_bounded(rule)
    return rule


def _text_rule(table: Table) -> TextRule:
    is_regex = table.get("regex") is not None
    rule = TextRule(
        id=table.text("id"),
        find=table.text("regex" if is_regex else "find"),
        is_regex=is_regex,
        replace=table.text("replace"),
        scope=_scope(table),
        expect=_expect(table),
        allow=tuple(_allowance(each) for each in table.tables("allow")),
        examples=tuple(_example(each) for each in table.tables("examples")),
        where=_where(table),
        optional=table.text("optional").strip(),
    )
    if is_regex:
        matches(rule, "", "")  # is there every group that `replace` names?
    return rule


def _scope(table: Table, endings: tuple[str, ...] = ()) -> Scope:
    return Scope(table.texts("files"), table.texts("ignores"), endings)


def _expect(table: Table) -> Expect:
    text = table.text("expect") or ">= 1"
    return Expect(int(text.removeprefix(">=")), not text.startswith(">"))


def _allowance(table: Table) -> Allowance:
    return Allowance(
        files=Scope((table.text("path"),)),
        within=table.text("within"),
        text=table.text("text").strip("\n"),
        reason=table.text("reason").strip(),
        where=table.where,
    )


def _example(table: Table) -> Example:
    sites, after = table.get("sites"), table.get("after")
    return Example(
        before=table.text("before"),
        after=after.text if isinstance(after, Scalar) else None,
        sites=int(sites.text) if isinstance(sites, Scalar) else None,
        where=table.where,
    )


def _mapping(node: Node | None) -> dict[str, object]:
    """A rule as ast-grep takes it."""
    data = _plain(node) if node is not None else {}
    assert isinstance(data, dict)
    return data


def _plain(node: Node, key: str = "") -> object:
    if isinstance(node, Table):
        return {name.text: _plain(value, name.text) for name, value in node.entries}
    if isinstance(node, Items):
        return [_plain(each) for each in node.items]
    if key in ("nthChild", "position") and re.fullmatch(r"[0-9]{1,9}", node.text):
        return int(node.text)
    return _code(node) if key in ("pattern", "context") else node.text


def _code(node: Scalar) -> str:
    """A scalar's text without the newline that a block ends with."""
    return node.text.removesuffix("\n") if node.style in ("|", ">") else node.text


def _where(table: Table) -> Location:
    key = table.get("id")
    return key.where if key is not None else table.where
