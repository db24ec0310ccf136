"""From a patch of repeated hunks to a recipe that gives the same patch.

A proposal is only made if running it gives the patch's tree. Code is looked at with its syntax:
the smallest piece around a change comes first, and pieces around it as long as the rule changes
more than the patch does. In files that are no code, lines take the place of pieces.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import BadInputError, ExitCode, PatchkitError, Problem
from patchkit.manifest.write import block_yaml
from patchkit.model.names import recipe_name, slug
from patchkit.model.patch import FileChange, Hunk, Kind
from patchkit.model.tree import ObjectSource
from patchkit.recipes.bounds import LANGUAGES
from patchkit.recipes.generate import read_paths, rewrite
from patchkit.recipes.recipe_file import parse_recipe
from patchkit.recipes.rule import Recipe
from patchkit.recipes.run import RecipeRun, decode_file, run_recipe
from patchkit.recipes.sites import Site, Source
from patchkit.stack.build import patch_changes
from patchkit.stack.series import LoadedPatch

# Rules as a person would write them.


#: Kinds of Python's nodes that are code, or that code, only with something around them.
_AROUND = {
    "keyword_argument": "f({})",
    "default_parameter": "def f({}): ...",
    "typed_default_parameter": "def f({}): ...",
}


def pattern_rule(language: str, text: str, kind: str = "") -> dict[str, Any]:
    """The rule that finds such code; `kind` is its kind of node where that is known."""
    if language == "python" and kind in _AROUND:
        return {"pattern": {"context": _AROUND[kind].format(text), "selector": kind}}
    if language == "python" and text.startswith("@"):
        name = text[1:].partition("#")[0].strip()
        if re.fullmatch(r"[\w.]+", name):
            # a comment behind it belongs to the decorator, so its text is not compared
            return {"kind": "decorator", "has": {"pattern": name}}
        return {"pattern": {"context": f"{text}\ndef f(): ...", "selector": "decorator"}}
    return {"pattern": text}


#: How far around a change a piece of code is looked for.
_LEVELS = 4
#: How many lines more than the change itself a piece of code may have: a whole function is no rule.
_LINES_AROUND = 4
#: How many places without a rule are named.
_NAMED = 5


class NoRecipeError(PatchkitError):
    """A patch that no recipe was found for; the problems say where it stops."""

    exit_code = ExitCode.FINDING


class _Block(Struct, frozen=True):
    """Neighbouring lines that a patch takes out and puts in.

    `line` is the first one's in the old file, `place` the hunk's in the patch.
    """

    path: str
    line: int
    place: int
    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def language(self) -> str:
        """The language of the file, "" for none that rules can be written for."""
        return _language(self.path)


def _language(path: str) -> str:
    endings = {ending: name for name, endings in LANGUAGES.items() for ending in endings}
    return endings.get(PurePosixPath(path).suffix, "")


class _Piece(Struct, frozen=True):
    """What one rule would do at one place: `matcher` becomes `new`; None: its lines are removed.

    `kind` is the kind of node where that is known.
    """

    path: str
    language: str
    matcher: str
    new: str | None
    kind: str = ""


class Induced(Struct, frozen=True):
    """A recipe that was found: the text of its file, and what running it did."""

    text: bytes
    recipe: Recipe
    run: RecipeRun


def induce_recipe(patch: LoadedPatch, source: ObjectSource, before: str, after: str) -> Induced:
    """A recipe that makes the tree `after` of the tree `before`, as the patch does.

    Raises NoRecipeError, with the lines of the patch that no rule was found for.
    """
    blocks = list(_blocks(patch_changes(patch.series_patch), patch.where))
    files = read_paths(source, before, {block.path for block in blocks})
    pieces = list(_Search(patch, blocks, files).pieces())
    for broad in (True, False):
        text = _recipe_text(patch, pieces, broad=broad)
        recipe = parse_recipe(text, Path(recipe_name(patch.name)))
        result = rewrite(source, before, recipe)
        if result.tree_id == after and not result.run.findings:
            return Induced(text, recipe, result.run)
    what = "the rules that its changes suggest do not give the same files together"
    raise NoRecipeError(Problem(what, patch.where, _OWN))


class _Search:
    """For each block the smallest pieces of code whose rules change nothing but the patch does."""

    def __init__(
        self, patch: LoadedPatch, blocks: Sequence[_Block], files: Mapping[str, bytes]
    ) -> None:
        self._patch = patch
        self._blocks = blocks
        self._files = files
        self._sources = {
            path: Source.of(path, decode_file(data)[0]) for path, data in files.items()
        }
        self._changed = {
            (block.path, block.line + number)
            for block in blocks
            for number in range(max(len(block.old), 1))
        }
        self._fits: dict[_Piece, bool] = {}

    def pieces(self) -> Iterator[_Piece]:
        """All pieces; NoRecipeError with every block that has none."""
        problems = []
        for block in self._blocks:
            found = self._of(block)
            yield from found
            if not found:
                what = f"no rule changes {block.path}:{block.line} and nothing else of the files"
                problems.append(Problem(what, f"{self._patch.where}:{block.place}", _OWN))
        if problems:
            raise _without_rule(problems)

    def _of(self, block: _Block) -> tuple[_Piece, ...]:
        for level in range(_LEVELS):
            pieces = tuple(_pieces(block, self._sources, level))
            longest = max((piece.matcher.count("\n") for piece in pieces), default=0)
            if longest > len(block.old) + _LINES_AROUND:
                break
            if pieces and all(self._fit(piece) for piece in pieces):
                return pieces
        return ()

    def _fit(self, piece: _Piece) -> bool:
        if piece not in self._fits:
            self._fits[piece] = self._changes_only_what_the_patch_does(piece)
        return self._fits[piece]

    def _changes_only_what_the_patch_does(self, piece: _Piece) -> bool:
        if not re.search(r"\w", piece.matcher):
            return False  # a quote or a bracket says nothing
        try:
            text = _recipe_text(self._patch, [piece], broad=False, expect=">= 1")
            recipe = parse_recipe(text, Path("trial"))
            run = run_recipe(recipe, {piece.path: self._files[piece.path]})
        except BadInputError:
            return False  # a piece of code that is no pattern by itself
        return not run.findings and all(
            (site.path, _first_changed_line(self._sources[site.path], site)) in self._changed
            for site in run.sites
        )


def _first_changed_line(source: Source, site: Site) -> int:
    start, end = site.cut
    at = start + _alike(source.text[start:end], site.new or "")
    return source.text.count("\n", 0, at) + 1


def _blocks(changes: Sequence[FileChange], where: str) -> Iterator[_Block]:
    problems = []
    found = []
    for change in changes:
        same_mode = change.new_mode in (None, change.old_mode)
        if change.kind is not Kind.MODIFY or change.binary is not None or not same_mode:
            what = f"{change.path}: more than changed lines"
            problems.append(Problem(what, f"{where}:{change.line}", _OWN))
            continue
        for hunk in change.hunks:
            for block in _blocks_of(hunk, change.path):
                found.append(block)
                if not block.old:
                    what = f"lines are added before {block.path}:{block.line}, and none replaced"
                    problems.append(Problem(what, f"{where}:{change.line}", _OWN))
    if problems:
        raise _without_rule(problems)
    yield from found


def _without_rule(problems: Sequence[Problem]) -> NoRecipeError:
    named, more = problems[:_NAMED], len(problems) - _NAMED
    if more <= 0:
        return NoRecipeError(*named)
    return NoRecipeError(*named, Problem(f"and {more} more", hint=_OWN))


_OWN = "keep it in a patch of its own"


def _blocks_of(hunk: Hunk, path: str) -> Iterator[_Block]:
    line = hunk.old_start
    old: list[str] = []
    new: list[str] = []
    for raw in (*hunk.lines, b" "):
        text = decode_file(raw[1:])[0]
        if raw[:1] == b"-":
            old.append(text)
        elif raw[:1] == b"+":
            new.append(text)
        elif raw[:1] == b" ":
            if old or new:
                yield _Block(path, line, hunk.line, tuple(old), tuple(new))
                line += len(old)
                old, new = [], []
            line += 1


def _pieces(block: _Block, sources: Mapping[str, Source], level: int) -> Iterator[_Piece]:
    if not block.language:
        yield from _text_piece(block, sources[block.path], level)
    elif not block.new:
        whole = textwrap.dedent("".join(block.old)).rstrip("\r\n")
        lines = re.split(r"\r?\n", whole)
        parts = lines if all(line[:1] not in (" ", "\t", "", ")") for line in lines) else [whole]
        for part in parts:
            # a comment behind a decorator goes with its line, whatever it says
            plain = re.sub(r"^(@[\w.]+)[ \t]+#.*$", r"\1", part)
            yield _Piece(block.path, block.language, plain, None)
    elif len(block.old) == len(block.new):
        start = _line_start(sources[block.path].text, block.line)
        for old, new in zip(block.old, block.new, strict=True):
            yield from _replaced(block, sources[block.path], (old, new), start, level)
            start += len(old)
    else:
        matcher = textwrap.dedent("".join(block.old)).rstrip("\r\n")
        new = textwrap.dedent("".join(block.new)).rstrip("\r\n")
        yield _Piece(block.path, block.language, matcher, new)


def _text_piece(block: _Block, source: Source, level: int) -> Iterator[_Piece]:
    """The lines as they are, with so many lines around them."""
    lines = [f"{line}\n" for line in source.text.split("\n")]
    first, last = block.line - 1, block.line - 1 + len(block.old)
    above, below = lines[max(first - level, 0) : first], lines[last : last + level]
    if "\r\n" in source.text or not source.text.endswith("\n"):
        return  # what a rule says has lines that end in a newline
    matcher = "".join((*above, *block.old, *below))
    yield _Piece(block.path, "", matcher, "".join((*above, *block.new, *below)))


def _replaced(
    block: _Block, source: Source, lines: tuple[str, str], start: int, level: int
) -> Iterator[_Piece]:
    """The piece of code around the part of a line that differs."""
    old, new = lines
    if old == new:
        return
    head = _alike(old, new)
    limit = min(len(old), len(new)) - head
    tail = min(_alike(old[::-1], new[::-1]), limit)
    first, last = start + head, start + len(old) - tail
    around = _around(source, block.language, first, last, level)
    if around is None:
        return
    (begin, end), kind = around
    text = source.text
    made = text[begin:first] + new[head : len(new) - tail] + text[last:end]
    yield _Piece(block.path, block.language, text[begin:end], made, kind)


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


def _around(
    source: Source, language: str, first: int, last: int, level: int
) -> tuple[tuple[int, int], str] | None:
    """The smallest node that holds a range, or the one `level` around it: its range and kind."""
    node = source.root(language)
    chain: list[tuple[tuple[int, int], str]] = []
    while True:
        place = node.range()
        span = (place.start.index + source.offset, place.end.index + source.offset)
        if node.is_named() and (not chain or chain[-1][0] != span):
            chain.append((span, node.kind()))
        inner = [child for child in node.children() if _holds(child, first, last, source.offset)]
        if not inner:
            return chain[-1 - level] if level < len(chain) - 1 else None
        node = inner[0]


def _holds(node: Any, first: int, last: int, offset: int) -> bool:
    place = node.range()
    return bool(place.start.index + offset <= first and last <= place.end.index + offset)


def _line_start(text: str, line: int) -> int:
    return sum(len(each) for each in text.split("\n")[: line - 1]) + line - 1


# -- writing it down -------------------------------------------------------------------------


def _recipe_text(
    patch: LoadedPatch, pieces: Sequence[_Piece], *, broad: bool, expect: str = ""
) -> bytes:
    """`broad`: wherever files of that kind lie below the folder that those of the patch share."""
    groups: dict[_Piece, list[str]] = {}
    for piece in pieces:
        groups.setdefault(replace(piece, path=""), []).append(piece.path)
    names = Counter[str]()
    rules, texts = [], []
    for piece, paths in groups.items():
        matcher, new = piece.matcher, piece.new
        name = _rule_name(matcher, new, names)
        scope = {"files": _globs(paths, broad=broad), "expect": expect or len(paths)}
        if piece.language:
            deed = {"remove": "lines"} if new is None else {"fix": new}
            rule = pattern_rule(piece.language, matcher, piece.kind)
            head = {"id": name, "language": piece.language, "rule": rule}
            rules.append(head | deed | scope)
        else:
            texts.append({"find": matcher, "replace": new or "", "id": name} | scope)
    header = patch.file.header
    data: dict[str, Any] = {"version": 1}
    data["description"] = header.message if header is not None else patch.name
    data |= {"rules": rules} if rules else {}
    data |= {"text": texts} if texts else {}
    return block_yaml(data)


def _rule_name(matcher: str, new: str | None, names: Counter[str]) -> str:
    verb = "drop" if new is None else "replace"
    stem = f"{verb}-{slug(matcher.partition(chr(10))[0])}"[:40].rstrip("-")
    names[stem] += 1
    return stem if names[stem] == 1 else f"{stem}-{names[stem]}"


def _globs(paths: Sequence[str], *, broad: bool) -> list[str]:
    exact = sorted(set(paths))
    if not broad or len(exact) == 1:
        return exact
    folder = _common_folder(exact)
    endings = sorted({PurePosixPath(path).suffix for path in exact})
    return [f"{folder}/**/*{ending}" if folder else f"**/*{ending}" for ending in endings]


def _common_folder(paths: Sequence[str]) -> str:
    parts = [path.split("/")[:-1] for path in paths]
    shared = zip(*parts, strict=False)
    return "/".join(each[0] for each in takewhile(lambda each: len(set(each)) == 1, shared))
