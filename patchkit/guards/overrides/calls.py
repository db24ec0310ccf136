"""The calls by which one upstream replaces things of another, and the names that they give."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.python.evaluate import Evaluator
from patchkit.python.modules import Module, Modules
from patchkit.python.resolve import Resolver
from patchkit.recipes.rule import CodeRule, Recipe
from patchkit.recipes.run import decode_file, may_match, needed_words
from patchkit.recipes.sites import Capture, Source, find_captures

#: The variable of a rule that stands for the name of what is replaced.
VARIABLE = "TARGET"


class CallSite(Struct, frozen=True):
    """A call that replaces something; `within` is the function around it, `text` the argument."""

    path: str
    line: int
    within: str
    text: str

    @property
    def place(self) -> str:
        """For messages: path:line."""
        return f"{self.path}:{self.line}"


class Replacements(Struct, frozen=True):
    """What the calls name.

    `targets` maps each dotted name to the calls that give it; `uncertain` are calls whose argument
    can be something that is not plain to see.
    """

    targets: Mapping[str, tuple[CallSite, ...]]
    uncertain: tuple[CallSite, ...] = ()
    problems: tuple[Problem, ...] = ()

    def below(self, packages: Collection[str]) -> Mapping[str, tuple[CallSite, ...]]:
        """The targets in some packages."""
        return {
            name: sites
            for name, sites in self.targets.items()
            if any(name == each or name.startswith(f"{each}.") for each in packages)
        }


def require_capturing(recipe: Recipe) -> tuple[CodeRule, ...]:
    """The rules of a recipe; BadInputError unless all are on Python and have the variable."""
    wrong = [rule for rule in recipe.rules if f"${VARIABLE}" not in repr(rule.rule)]
    problems = [
        Problem(
            f"{rule.id} does not say which argument names what is replaced",
            str(rule.where),
            f"write ${VARIABLE} for it: pattern: $_.register_patch(${VARIABLE}, $$$)",
        )
        for rule in wrong
    ]
    problems += [
        Problem(f"{rule.id} is a rule on text, or on another language", str(rule.where))
        for rule in recipe.all_rules
        if not isinstance(rule, CodeRule) or rule.language != "python"
    ]
    if problems:
        raise BadInputError(*problems)
    return recipe.rules


def find_replacements(recipe: Recipe, modules: Modules, files: Mapping[str, bytes]) -> Replacements:
    """What the calls in files name; `modules` are those of the whole tree.

    BadInputError for a rule that ast-grep does not take.
    """
    rules = require_capturing(recipe)
    reader = Evaluator(Resolver(modules))
    targets: dict[str, list[CallSite]] = {}
    uncertain: list[CallSite] = []
    for path, data in sorted(files.items()):
        source = Source.of(path, decode_file(data)[0])
        captures = [each for rule in rules for each in _captures(rule, source, data)]
        for site, names, complete in _read(captures, source, modules, reader):
            for name in names:
                targets.setdefault(name, []).append(site)
            if not complete:
                uncertain.append(site)
    found = {name: tuple(dict.fromkeys(sites)) for name, sites in sorted(targets.items())}
    return Replacements(found, tuple(uncertain))


def _captures(rule: CodeRule, source: Source, data: bytes) -> Iterator[Capture]:
    if rule.scope.covers(source.path) and may_match(data, needed_words(rule.rule, rule.utils)):
        for capture in find_captures(rule, source, VARIABLE):
            if capture.site.allowed is None:
                yield capture


def _read(
    captures: Iterable[Capture], source: Source, modules: Modules, reader: Evaluator
) -> Iterator[tuple[CallSite, Collection[str], bool]]:
    nodes: Mapping[tuple[int, int], ast.expr] = {}
    module: Module | None = None
    for capture in captures:
        text = source.text[capture.start : capture.end]
        site = CallSite(source.path, capture.site.line, capture.site.within, text)
        literal = _literal(text)
        if literal is not None:
            yield site, [literal], True
            continue
        module = module or modules.at(source.path)
        nodes = nodes or ({} if module is None else _by_place(module, source.text))
        node = nodes.get((capture.start, capture.end))
        if module is None or node is None:
            yield site, (), False
        else:
            texts = reader.texts(reader.spot(module, node))
            yield site, sorted(texts.values), texts.complete


def _literal(text: str) -> str | None:
    """The text that a plain literal says."""
    if text[:1] not in "'\"":
        return None
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return None
    return value if isinstance(value, str) else None


def source_lines(text: str) -> list[str]:
    """The lines of Python source, with their ends, as its parser counts them."""
    return [match[0] for match in re.finditer(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", text)]


def _by_place(module: Module, text: str) -> Mapping[tuple[int, int], ast.expr]:
    """Every expression of a module by its range in characters."""
    starts, position = [0], 0
    lines = source_lines(text)
    for line in lines:
        position += len(line)
        starts.append(position)

    def place(line: int, column: int) -> int:
        inner = lines[line - 1].encode()[:column].decode(errors="ignore")
        return starts[line - 1] + len(inner)

    found: dict[tuple[int, int], ast.expr] = {}
    for node in ast.walk(module.syntax):
        if isinstance(node, ast.expr):
            start = place(node.lineno, node.col_offset)
            end = place(node.end_lineno or 0, node.end_col_offset or 0)
            found.setdefault((start, end), node)  # parts of an f-string have its range, too
    return found
