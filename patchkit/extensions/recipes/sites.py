"""Where a rule matches in a file; the only module that loads ast-grep.

All places are counted in characters, as ast-grep's ranges are. A byte order mark is not shown to
the parser: it would be part of the first token.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.extensions.recipes.regex import matches
from patchkit.extensions.recipes.rule import (
    HASH_COMMENTS,
    Allowance,
    CodeRule,
    Rule,
    TextRule,
    require_apart,
    require_bounded,
    require_shallow,
    require_small,
)
from patchkit.model.names import AtLine

if TYPE_CHECKING:
    from ast_grep_py import SgNode


def engine_version() -> str:
    """The version of ast-grep, for what is kept of its answers."""
    from importlib.metadata import version  # noqa: PLC0415 (slow to import)

    return version("ast-grep-py")


# The qualified name of the function or class around a site: "Outer.method".


_NAMED = re.compile(r"function|class|method|definition|declaration|struct|impl|module|interface")


def _named_matches(rule: CodeRule, source: Source) -> Iterator[tuple[SgNode, str]]:
    """What the rule matches, with the names of the functions and classes around it.

    BadInputError when the sites lie inside each other by the thousand.
    """
    text = steps = 0
    for node in _matches(rule, source):
        # not parent(): each call of it walks down from the root again
        chain = [node, *node.ancestors()]
        place = node.range()
        text += place.end.index - place.start.index
        steps += len(chain)
        require_apart(rule, source.path, text=text, steps=steps)
        names = [name for inner, outer in pairwise(chain) if (name := _own(outer, inner))]
        yield node, ".".join(reversed(names))


def _own(outer: SgNode, inner: SgNode) -> str:
    """What `outer` adds to the name of what is in its child `inner`; "" for nothing."""
    named = outer
    if outer.kind() == "decorated_definition":
        definition = outer.field("definition")
        if definition is None or definition.range().start == inner.range().start:
            return ""
        named = definition
    name = named.field("name") if _NAMED.search(named.kind()) else None
    return name.text() if name is not None else ""


# The template of a fix: text in which $NAME and $$$NAME stand for what a pattern found.
#
# ast-grep's Python binding expands no templates; this follows its command line: further lines of
# the template are set in like the line that the match starts in, and code that a variable brings
# is moved as a block where its lines stand further in or out than before. In contrast to it,
# lines within a string stay as they are: moved, they would be another string.


_VARIABLE = re.compile(r"\$\$\$([A-Z_][A-Z0-9_]*)|\$([A-Z_][A-Z0-9_]*)|\$\$\$")


class CapturedText(Struct, frozen=True):
    """What a variable stands for.

    `column` is how many columns the line that it starts in is set in; `literal` are the lines,
    counted from 0, that begin within a string.
    """

    text: str = ""  # as it stands in the file
    column: int = 0
    literal: frozenset[int] = frozenset()


def variables_in(pattern: str) -> set[str]:
    """The variables that a pattern binds, with their $; those that begin with _ bind nothing."""
    found = {match[0] for match in _VARIABLE.finditer(pattern)}
    return {name for name in found if not name.lstrip("$").startswith("_") and name != "$$$"}


def used_variables(template: str) -> set[str]:
    """The variables that a template needs, with their $."""
    return {match[0] for match in _VARIABLE.finditer(template) if match[0] != "$$$"}


def expand(template: str, value: Callable[[str], CapturedText], indent: str, eol: str) -> str:
    """The text of a fix.

    `value` gives what a variable (with its $) stands for, `indent` are the blanks before the line
    that the match starts in, `eol` is the file's line ending.
    """
    lines = template.split("\n")
    expanded = [_line(line, value, indent if number else "", len(indent))
                for number, line in enumerate(lines)]  # fmt: skip
    return eol.join(expanded)


def _line(line: str, value: Callable[[str], CapturedText], lead: str, indent: int) -> str:
    own = len(line) - len(line.lstrip(" \t"))

    def bring(match: re.Match[str]) -> str:
        if match[0] == "$$$":
            return match[0]
        brought = value(match[0])
        return _moved(brought, indent + own - brought.column)

    text = _VARIABLE.sub(bring, line)
    return lead + text if text else ""


def _moved(brought: CapturedText, columns: int) -> str:
    """The lines after the first, set in by so many more columns."""
    if columns == 0 or "\n" not in brought.text:
        return brought.text
    first, *rest = brought.text.split("\n")
    moved = [
        line if number in brought.literal else _shifted(line, columns)
        for number, line in enumerate(rest, 1)
    ]
    return "\n".join([first, *moved])


def _shifted(line: str, columns: int) -> str:
    if not line.strip():
        return line
    if columns > 0:
        return " " * columns + line
    blanks = len(line) - len(line.lstrip(" \t"))
    return line[min(-columns, blanks) :]


BOM = "\ufeff"


class Site(AtLine, Struct, frozen=True):
    """A place that a rule names: `text[start:end]`, at a 1-based line and column.

    `within` is the qualified name of the function or class around it ("Outer.method"; of a
    decorator, what it decorates), "" at the top and in text. `new` replaces it; None: it stays,
    because it is allowed or because the rule only looks. What an edit takes away may be more
    than the match: `cut` is its range.
    """

    rule: str
    path: str  # of the file
    line: int
    column: int
    start: int
    end: int
    text: str
    within: str
    new: str | None
    cut: tuple[int, int]
    allowed: int | None = None  # the number of the rule's allowance for it


class Source(Struct, frozen=True):
    """A file's text; trees are parsed once per language."""

    path: str  # of the file
    text: str
    roots: dict[str, SgNode] = {}  # language -> tree
    #: Index in the text of each line's first character.
    starts: list[int] = []
    #: Language -> lines that begin within a string.
    literals: dict[str, list[int]] = {}

    def place(self, at: int) -> tuple[int, int]:
        """The line and the column of a character, from 1."""
        if not self.starts:
            lengths = (len(each) + 1 for each in self.text.split("\n"))
            self.starts.extend(accumulate(lengths, initial=0))
        line = bisect_right(self.starts, at)
        return line, at - self.starts[line - 1] + 1

    @property
    def eol(self) -> str:
        """How its lines end, judged by the first."""
        first = self.text.partition("\n")[0]
        return "\r\n" if first.endswith("\r") else "\n"

    @property
    def offset(self) -> int:
        """How many characters the parser is not shown."""
        return len(BOM) if self.text.startswith(BOM) else 0

    def root(self, language: str) -> SgNode:
        """The tree in that language."""
        if language not in self.roots:
            from ast_grep_py import SgRoot  # noqa: PLC0415 (45 MB that most commands never need)

            self.roots[language] = SgRoot(self.text[self.offset :], language).root()
        return self.roots[language]

    def literal(self, rule: CodeRule, nodes: Sequence[SgNode]) -> frozenset[int]:
        """The lines that begin within a string or another token, counted from the first node's."""
        top, last = nodes[0].range().start.line, nodes[-1].range().end.line
        if rule.language not in self.literals:  # once: sites may lie inside each other
            self.literals[rule.language] = sorted(_literal_lines(self.root(rule.language)))
        lines = self.literals[rule.language]
        inside = lines[bisect_right(lines, top) : bisect_right(lines, last)]
        return frozenset(line - top for line in inside)

    def errors(self, language: str) -> int:
        """How many places the parser could make nothing of."""
        return len(self.root(language).find_all(kind="ERROR"))


def _literal_lines(root: SgNode) -> set[int]:
    found: set[int] = set()
    todo = [root]
    while todo:
        node = todo.pop()
        first, last = node.range().start.line, node.range().end.line
        children = node.children() if first != last else []
        if children and not _LITERAL.search(node.kind()):
            todo += children
        elif first != last:
            found |= set(range(first + 1, last + 1))
    return found


def find_sites(rule: Rule, source: Source) -> list[Site]:
    """Every site of the rule in the file, in order; those that are allowed say so.

    BadInputError, at the rule, if ast-grep does not take it.
    """
    made = _code_sites(rule, source) if isinstance(rule, CodeRule) else _text_sites(rule, source)
    found, size = [], 0
    for site in made:
        found.append(site)
        size += len(site.new or "")
        require_small(rule, source.path, size)
    return sorted(found, key=lambda site: (site.start, site.end))


def find_captures(
    rule: CodeRule, source: Source, variable: str
) -> list[tuple[Site, tuple[int, int]]]:
    """Every site of the rule at which a variable (without its `$`) stands for one node, and where:
    `text[start:end]`, characters of the file.
    """
    found = list[tuple[Site, tuple[int, int]]]()
    for node, within in _named_matches(rule, source):
        part = node.get_match(variable)
        if part is not None:
            site = _site(rule, source, _span(node, source), within=within, node=node)
            found.append((site, _span(part, source)))
    return sorted(found, key=lambda each: each[1])


@cache
def selected_code(
    language: str, context: str, selector: str = "", strictness: str = "smart"
) -> str:
    """The part of a context that is the pattern, or "" where that is not certain: of a strictness
    that passes over words, and where it is not known what ast-grep takes for a variable's `$`.
    """
    if language != "python" or not selector or strictness != "smart":
        return ""
    found = Source("", context.replace("$", "µ")).root(language).find(kind=selector)
    return found.text() if found else ""


def check_rule(rule: CodeRule) -> None:
    """BadInputError if ast-grep does not take the rule, or a pattern of it is no code."""
    source = Source("", "")
    for pattern in _patterns((rule.rule, *rule.utils.values(), *rule.constraints.values())):
        # a variable is an identifier to the parser; half a statement is an error in any language
        plain = re.sub(r"\$+([A-Z_]*)", r"_\1", pattern)
        if rule.language == "python" and Source("", plain).errors("python"):
            hint = "write it with code around it: {context: ..., selector: KIND}"
            what = f"{rule.id}: the pattern is no Python: {pattern}"
            raise BadInputError(Problem(what, str(rule.where), hint))
    _matches(rule, source)


def _code_sites(rule: CodeRule, source: Source) -> Iterator[Site]:
    for node, within in _named_matches(rule, source):
        yield _site(rule, source, _span(node, source), within=within, node=node)


def _span(node: SgNode, source: Source) -> tuple[int, int]:
    place = node.range()
    return place.start.index + source.offset, place.end.index + source.offset


def _matches(rule: CodeRule, source: Source) -> Sequence[SgNode]:
    config = {"rule": rule.rule, "constraints": rule.constraints, "utils": rule.utils}
    root = source.root(rule.language)
    if looks := require_bounded(rule):
        require_shallow(rule, looks, source.path, root)
    try:
        return root.find_all(config)  # type: ignore[call-overload, no-any-return]
    except Exception as error:  # ast-grep raises plain Exception and RuntimeError
        what = f"{rule.id}: ast-grep does not take the rule: {_cause(error)}"
        raise BadInputError(Problem(what, str(rule.where))) from error


def _cause(error: Exception) -> str:
    """The last of the causes that ast-grep lists, or what its regex engine says."""
    text = str(error).partition("Stack backtrace")[0]
    regex = re.search(r"^ *error: (.*)$", text, re.MULTILINE)
    if regex:
        return f"regex: {regex[1]}"
    causes = re.findall(r"^ +[0-9]+: (.*)$", text, re.MULTILINE)
    return str(causes[-1] if causes else text.strip().partition("\n")[0]).rstrip(".")


def _text_sites(rule: TextRule, source: Source) -> Iterator[Site]:
    if rule.is_regex:
        for match in matches(rule, source.path, source.text):
            new = _with_ends(match.new, source.eol)
            yield _site(rule, source, (match.start, match.end), new=new)
        return
    find, new = (_with_ends(text, source.eol) for text in (rule.find, rule.replace))
    at = source.text.find(find) if find else -1
    while at >= 0:
        yield _site(rule, source, (at, at + len(find)), new=new)
        at = source.text.find(find, at + len(find))


def _site(
    rule: Rule,
    source: Source,
    span: tuple[int, int],
    *,
    within: str = "",
    node: SgNode | None = None,
    new: str | None = None,
) -> Site:
    """A site; `node` is what a rule on code found, `new` what one on text makes of it."""
    start, end = span
    text = source.text[start:end]
    about = (source.path, within, text)
    allowed = next((n for n, each in enumerate(rule.allow) if _allows(each, *about)), None)
    cut = span
    if allowed is not None:
        new = None
    elif isinstance(rule, CodeRule):
        if rule.remove:
            new, cut = "", _whole_lines(source.text, span, rule.language)
        elif rule.fix is not None:
            assert node is not None
            new = _fixed(rule, source, start, node)
    line, column = source.place(start)
    return Site(
        rule=rule.id,
        path=source.path,
        line=line,
        column=column,
        start=start,
        end=end,
        text=text,
        within=within,
        new=new,
        cut=cut,
        allowed=allowed,
    )


def _allows(allowance: Allowance, path: str, within: str, text: str) -> bool:
    return (
        allowance.files.covers(path)
        and (not allowance.within or allowance.within == within)
        and allowance.text in text
    )


def _with_ends(text: str, eol: str) -> str:
    return re.sub(r"(?<!\r)\n", eol, text) if eol != "\n" else text


def _fixed(rule: CodeRule, source: Source, start: int, node: SgNode) -> str:
    assert rule.fix is not None

    def value(variable: str) -> CapturedText:
        name = variable.lstrip("$")
        if variable.startswith("$$$"):
            nodes = node.get_multiple_matches(name)
        else:
            one = node.get_match(name)
            if one is None:
                raise _unbound(rule, variable, source, start)
            nodes = [one]
        if not nodes:
            return CapturedText()
        first, last = nodes[0].range().start.index, nodes[-1].range().end.index
        text = source.text[first + source.offset : last + source.offset]
        column = len(_indent(source.text, first + source.offset))
        # a block of text in YAML is part of its node's indentation
        literal = frozenset[int]() if rule.language == "yaml" else source.literal(rule, nodes)
        return CapturedText(text, column, literal)

    return expand(rule.fix, value, _indent(source.text, start), source.eol)


#: Kinds of nodes whose lines are a value, however they are made up of others.
_LITERAL = re.compile(r"string|heredoc|comment")


def _unbound(rule: CodeRule, variable: str, source: Source, start: int) -> BadInputError:
    # ast-grep's command line would write nothing in its place
    line = source.text.count("\n", 0, start) + 1
    what = f"{rule.id}: {variable} stands for nothing at {source.path}:{line}, and fix needs it"
    hint = "use the same variables in every alternative, or make it a rule of its own"
    return BadInputError(Problem(what, str(rule.where), hint))


def _indent(text: str, at: int) -> str:
    """The blanks that the line of a place begins with."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    found = re.match(r"[ \t]*", line)
    return found[0] if found else ""


def _whole_lines(text: str, span: tuple[int, int], language: str) -> tuple[int, int]:
    """The lines of a range, if nothing but blanks and a comment stands beside it, else itself."""
    start = text.rfind("\n", 0, span[0]) + 1
    start += len(BOM) if text.startswith(BOM, start) else 0
    comment = r"(?:#[^\n]*)?" if language in HASH_COMMENTS else ""
    rest = re.compile(rf"[ \t]*{comment}(?:\r?\n|\Z|\r\Z)").match(text, span[1])
    if text[start : span[0]].strip(" \t") or rest is None:
        return span
    return start, rest.end()


def _patterns(rules: Sequence[Any]) -> Iterator[str]:
    for rule in rules:
        if not isinstance(rule, dict):
            continue
        for key, value in rule.items():
            if key == "pattern" and isinstance(value, str):
                yield value
            else:
                yield from _patterns(value if isinstance(value, tuple | list) else [value])
