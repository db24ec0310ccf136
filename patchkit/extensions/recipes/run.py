"""Files in, files out: a recipe, what its rules make of files, and what is wrong with that.

All rules look at a file as it was; their edits are made at once, so the order of rules does not
matter. Edits that overlap, a second run that would edit again, and a result that no longer parses
are errors: nothing of such a run may be written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.result_cache import code_digest
from patchkit.errors import BadInputError, Problem
from patchkit.extensions.recipes.rule import (
    LANGUAGES,
    CodeRule,
    Example,
    Expect,
    RecipeRules,
    Rule,
)
from patchkit.extensions.recipes.sites import Site, Source, check_rule, find_sites, selected_code
from patchkit.model.finding import Finding, Severity
from patchkit.model.syntax import syntax_problem
from patchkit.model.text import counted, listed

# What a file must contain for a rule to match anywhere in it: most files are never parsed.
#
# Only what is certain is used: words that stand in a pattern must stand in the code that it
# matches, letter by letter, and so must those parts of a regular expression that are plain
# characters, or one of several. Where nothing is certain every file is parsed.


_WORD = re.compile(r"(?<![\w$])[A-Za-z_]\w{2,}")
#: Names of Python with a dot or `=` between them, and nothing else but blanks and comments.
_CHAIN = re.compile(r"(?<![\w$])[A-Za-z_]\w*(?:[.=][A-Za-z_]\w*)+", re.ASCII)
_BETWEEN = rb"(?:[\s\\]|#[^\n]*)*"
#: Of a regular expression: an escape, a class, a repeat, the rest.
_PIECES = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{[^}]*\}|.", re.DOTALL)
#: A piece that means to Python's re what it means to Rust's.
_PLAIN = re.compile(r"[\w \"'=:,/@-]|\\[.()\"'/-]|\[[\w.,:\"'/]+\]", re.ASCII)


def may_match(rule: Rule, data: bytes) -> bool:
    """Whether a file with these contents has to be parsed for a rule."""
    if isinstance(rule, CodeRule):
        return _may_match(rule.rule, rule, data)
    first = rule.find.partition("\n")[0]
    return rule.is_regex or not first.isascii() or first.encode() in data


def _may_match(part: Mapping[str, Any], rule: CodeRule, data: bytes) -> bool:
    for key, value in part.items():
        found = True
        match key:
            case "pattern":
                code = value if isinstance(value, str) else selected_code(rule.language, **value)
                found = all(word in data for word in _words_of(code))
                if found and rule.language == "python":
                    found = all(chain.search(data) for chain in _chains_of(code))
            case "regex":
                found = all(part.search(data) for part in _parts_of(value))
            case "inside" | "has" | "follows" | "precedes":
                found = _may_match(value, rule, data)
            case "all":
                found = all(_may_match(each, rule, data) for each in value)
            case "any":
                found = any(_may_match(each, rule, data) for each in value)
            case "matches" if value in rule.utils:
                others = {name: each for name, each in rule.utils.items() if name != value}
                found = _may_match(rule.utils[value], replace(rule, utils=others), data)
        if not found:
            return False
    return True


@lru_cache(1000)
def _words_of(pattern: str) -> list[bytes]:
    return [word.encode() for word in _WORD.findall(pattern) if word.isascii()]


@lru_cache(1000)
def _chains_of(pattern: str) -> list[re.Pattern[bytes]]:
    chains = (re.split(r"([.=])", chain) for chain in _CHAIN.findall(pattern))
    return [re.compile(_BETWEEN.join(re.escape(e.encode()) for e in chain)) for chain in chains]


@lru_cache(1000)
def _parts_of(regex: str) -> list[re.Pattern[bytes]]:
    """What all that it matches has: its plain parts that are in no group and not repeated."""
    parts, depth = [""], 0
    for piece, after in pairwise([*_PIECES.findall(regex), ""]):
        depth += (piece == "(") - (piece == ")")
        if (piece == "|" and not depth) or piece + after == "(?":  # as (?i), by which all changes
            return []
        if depth == 0 and _PLAIN.fullmatch(piece) and after[:1] not in ("?", "*", "{"):
            parts[-1] += piece
        else:
            parts.append("")
    return [re.compile(each.encode()) for each in parts if re.search(r"\w{3}", each)]


#: The code that decides what a recipe makes of a file.
_CODE = ("extensions/recipes", "model/syntax", "model/text")

#: Findings for which the result must not be used.
FATAL = frozenset({"recipe-overlap", "recipe-not-idempotent", "recipe-does-not-parse"})


class RecipeRun(Struct, frozen=True):
    """What a recipe did: path -> new contents of each file that it changed.

    `sites` are all that the rules named, in the order of the rules, allowed ones included.
    """

    changed: Mapping[str, bytes]
    sites: tuple[Site, ...]
    findings: tuple[Finding, ...]

    @property
    def fatal(self) -> tuple[Finding, ...]:
        """Why the result must not be used."""
        return tuple(each for each in self.findings if each.code in FATAL)

    def count(self, rule: str) -> int:
        """How many sites a rule has that are not allowed."""
        return sum(site.rule == rule and site.allowed is None for site in self.sites)


class Recipe(RecipeRules, frozen=True, kw_only=True):
    """A recipe: rules from which a patch is generated."""

    @property
    def globs(self) -> Iterator[str]:
        """Those of all rules."""
        return (glob for rule in self.all_rules for glob in rule.scope.files)

    @property
    def facts(self) -> str:
        """What it says, and a digest of the code."""
        return f"{code_digest(*_CODE)} {self!r}"

    def run(self, files: Mapping[str, bytes]) -> RecipeRun:
        """What all rules make of files by path; those out of their scopes may be among them.

        Raises BadInputError for a rule that ast-grep does not take, or that takes without end.
        """
        sites: list[Site] = []
        changed: dict[str, bytes] = {}
        findings: list[Finding] = []
        rules = self.all_rules
        scopes = dict.fromkeys(rule.scope for rule in rules)
        covered = {p: data for p, data in files.items() if any(scope.covers(p) for scope in scopes)}
        for path, data in covered.items():
            made = _made_of(self, rules, path, data)
            sites += made.sites
            findings += made.findings
            if made.is_changed:
                changed[path] = splice(data, made.sites)
        order = {rule.id: number for number, rule in enumerate(rules)}
        sites.sort(key=lambda site: order[site.rule])
        findings += [each for rule in rules for each in expectations(rule, sites, covered)]
        return RecipeRun(changed, tuple(sites), tuple(findings))


class _FileRun(Struct, frozen=True):
    """What the rules of a recipe make of one file."""

    sites: tuple[Site, ...] = ()
    findings: tuple[Finding, ...] = ()  # what is wrong with it
    is_changed: bool = False  # whether the edits of the sites make another file of it


_NOTHING = _FileRun()
#: How many files' runs are kept at most.
_MOST_RUNS = 20_000
#: By recipe, which has no hash and is held, path and a digest of the contents: a stack is tried on
#: many trees, in which most files are the same.
_runs: dict[tuple[int, str, bytes], tuple[Recipe, _FileRun]] = {}


def _made_of(recipe: Recipe, rules: Sequence[Rule], path: str, data: bytes) -> _FileRun:
    """What rules make of a file: it follows from them, its path and its contents."""
    if b"\0" in data or not any(r.scope.covers(path) and may_match(r, data) for r in rules):
        return _NOTHING
    key = id(recipe), path, sha256(data).digest()
    row = _runs.get(key)
    if row is None:
        if len(_runs) >= _MOST_RUNS:
            _runs.clear()
        source = read_source(path, data)
        sites = sites_in(rules, source, data)
        findings = list(_overlaps(sites))
        new = data if findings else splice(data, sites)
        if new != data:
            findings += _damage(rules, sites, source, data, new)
        row = _runs[key] = recipe, _FileRun(tuple(sites), tuple(findings), new != data)
    return row[1]


def decode_file(data: bytes) -> tuple[str, str]:
    """A file's text and its encoding: UTF-8 where it is, else one character per byte."""
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"


def splice(data: bytes, sites: Sequence[Site]) -> bytes:
    """The file with every edit made; they must not overlap."""
    text, encoding = decode_file(data)
    parts: list[str] = []
    position = 0
    for site in sorted((s for s in sites if s.new is not None), key=lambda each: each.cut):
        assert site.new is not None
        parts += [text[position : site.cut[0]], site.new]
        position = site.cut[1]
    try:
        return "".join([*parts, text[position:]]).encode(encoding)
    except UnicodeEncodeError as error:
        what = "is not UTF-8, and a fix brings characters that its bytes cannot say"
        raise BadInputError(Problem(what, next(iter(sites)).path)) from error


def read_source(path: str, data: bytes) -> Source:
    """A file of these contents, for rules to look at."""
    return Source(path, decode_file(data)[0])


def sites_in(rules: Sequence[Rule], source: Source, data: bytes) -> list[Site]:
    """What rules find in a file of these contents, rule by rule."""
    asked = [each for each in rules if each.scope.covers(source.path) and may_match(each, data)]
    return [site for rule in asked for site in find_sites(rule, source)]


def _overlaps(sites: Sequence[Site]) -> Iterator[Finding]:
    edits = sorted((site for site in sites if site.new is not None), key=lambda each: each.cut)
    for one, other in pairwise(edits):
        if other.cut[0] < one.cut[1]:
            rules = one.rule if one.rule == other.rule else f"{one.rule} and {other.rule}"
            yield Finding(
                Severity.ERROR,
                "recipe-overlap",
                f"{rules}: two edits of the same text, the other at line {other.line}",
                one.place,
                "narrow the rule: `not: {inside: ...}` or `ignores`",
            )


def _damage(
    rules: Sequence[Rule], sites: Sequence[Site], before: Source, old: bytes, new: bytes
) -> Iterator[Finding]:
    """What is wrong with a file that was changed."""
    after = read_source(before.path, new)
    for site in sites_in(rules, after, new):
        if site.new is not None and after.text[slice(*site.cut)] != site.new:
            yield Finding(
                Severity.ERROR,
                "recipe-not-idempotent",
                f"{site.rule}: run again, it would edit its own result",
                site.place,
                "narrow the rule so that it does not match what it writes",
            )
            break
    edited = {site.rule for site in sites if site.new is not None}
    languages = {r.language for r in rules if isinstance(r, CodeRule) and r.id in edited}
    languages |= {"python"} if before.path.endswith(".py") else set()
    for language in sorted(languages):
        if after.errors(language) > before.errors(language) or (
            language == "python" and syntax_problem(".py", new) and not syntax_problem(".py", old)
        ):
            yield Finding(
                Severity.ERROR,
                "recipe-does-not-parse",
                f"{', '.join(sorted(edited))}: the result is no {language} any more",
                before.path,
                "narrow the rule, or correct its `fix`",
            )


def expectations(rule: Rule, sites: Sequence[Site], paths: Iterable[str]) -> Iterator[Finding]:
    """What a rule says there is, and is not: of the sites that were found, in files at `paths`."""
    if not any(map(rule.scope.covers, paths)):
        yield from without_files([rule])
        return
    where = str(rule.where)
    own = [site for site in sites if site.rule == rule.id]
    there = [site.place for site in own if site.allowed is None]
    if not rule.expect.holds(len(there)):
        yield _count_is_off(rule, there, where)
    used = {site.allowed for site in own}
    for number, allowance in enumerate(rule.allow):
        if number not in used:
            yield Finding(
                Severity.WARNING,
                "recipe-allowance",
                f"{rule.id}: no site is there to be allowed",
                str(allowance.where),
                "delete the allowance",
            )


def without_files(rules: Iterable[Rule]) -> Iterator[Finding]:
    """What is said of rules none of whose `files` is there: they hold whatever becomes of it."""
    for rule in rules:
        if not rule.optional:
            what = f"{rule.id}: no file is there that {' '.join(rule.scope.files)} names"
            hint = "has upstream moved them? Correct `files`, or give the reason by `optional:`"
            yield Finding(Severity.ERROR, "recipe-files", what, str(rule.where), hint)


_SHOWN = 12  # sites of a rule that has more or fewer than it says


def _count_is_off(rule: Rule, there: Sequence[str], where: str) -> Finding:
    if not there:
        what, code = "matches nothing", "recipe-dead-rule"
        hint = "has upstream renamed it? Take the rule out, or write expect: 0"
    else:
        sites = f"{counted(len(there), 'site')}, not {rule.expect}: {listed(there, _SHOWN)}"
        what, code = f"matches {sites}", "recipe-count"
        hint = "if these are right, change `expect` or `allow` them"
    return Finding(Severity.ERROR, code, f"{rule.id}: {what}", where, hint)


# The examples in a recipe, run: what each rule makes of a piece of code.


_ANY = Expect(0, exact=False)


class ExampleResult(Struct, frozen=True):
    """An example of the rule `rule`: `wrong` says what is not as it should be, "" if all is.

    `expected` and `got` are the texts after, where they differ.
    """

    rule: str
    where: str
    wrong: str = ""
    expected: bytes = b""
    got: bytes = b""


def run_examples(recipe: Recipe) -> Iterator[ExampleResult]:
    """Run every example; BadInputError for a rule that ast-grep does not take."""
    for rule in recipe.all_rules:
        if isinstance(rule, CodeRule):
            check_rule(rule)
        for example in rule.examples:
            yield _run_example(recipe, rule, example)


def _run_example(recipe: Recipe, rule: Rule, example: Example) -> ExampleResult:
    result = ExampleResult(rule.id, str(example.where))
    path = "example" + (LANGUAGES[rule.language][0] if isinstance(rule, CodeRule) else "")
    alone = replace(rule, files=(path,), ignores=(), expect=_ANY, allow=())
    rules = (alone,) if isinstance(alone, CodeRule) else ()
    texts = () if isinstance(alone, CodeRule) else (alone,)
    before = example.before.encode()
    run = replace(recipe, rules=rules, texts=texts).run({path: before})
    if run.fatal:
        return replace(result, wrong=run.fatal[0].what.removeprefix(f"{rule.id}: "))
    if example.sites is not None and example.sites != run.count(rule.id):
        return replace(result, wrong=f"finds {run.count(rule.id)} sites, not {example.sites}")
    got = run.changed.get(path, before)
    if example.after is not None and got != example.after.encode():
        wrong = "gives another text"
        return replace(result, wrong=wrong, expected=example.after.encode(), got=got)
    return result
