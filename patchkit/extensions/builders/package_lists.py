"""Patches as other builders list them: SRC_URI of a Yocto recipe, PatchN lines of an RPM spec.

Neither BitBake nor rpm is run, so only what a line says by itself is taken: simple variables and
macros are expanded, and what holds on some builds only, in an override or between %if and %endif,
is left out with a note. Nothing here reads a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath

from msgspec import Struct, field

from patchkit.errors import BadInputError, Problem
from patchkit.model.names import is_listed_name

_PATCH = (".patch", ".diff")
_COMPRESSED = (".gz", ".bz2", ".xz", ".Z", ".zst")
_LONGEST = 1 << 16  # characters that a value may grow to
_ROUNDS = 10  # of expanding
_MOST_FILES = 100  # that a recipe includes; such as include each other never end


class ListedPatch(Struct, frozen=True):
    """A patch of a list: its file's name, how many folders go from its paths, where it stands."""

    name: str
    strip: int  # as -pN
    where: str


class PatchList(Struct, frozen=True):
    """What a file lists, in the order of application; `notes` say what was left out, and why.

    `folders` are where the files may be, in this order, relative to the list's own folder.
    """

    kind: str  # a word for it, such as "RPM spec"
    patches: tuple[ListedPatch, ...]  # in the order of application
    folders: tuple[str, ...]
    notes: tuple[Problem, ...] = ()


def _left_out(notes: list[Problem], what: str, where: str, hint: str = "") -> None:
    notes.append(Problem(f"left out: {what}", where, hint or "import that file by itself"))


def _is_file(name: str, said: str, where: str, notes: list[Problem]) -> bool:
    """Whether a name is that of a patch which may be beside the list; a note says why it is not.

    `said` is the name as the list writes it.
    """
    if any(mark in name for mark in "$%") or not is_listed_name(name):
        _left_out(notes, f"{said} is not a known name", where)
    elif name.endswith(_COMPRESSED):
        _left_out(notes, f"{name} is compressed", where, "unpack and import it")
    else:
        return True
    return False


def _expanded(text: str, names: re.Pattern[str], values: Callable[[re.Match[str]], str]) -> str:
    """The text with what is known put in; bounded, as a value may name itself."""
    room = _LONGEST

    def put_in(found: re.Match[str]) -> str:
        nonlocal room
        value = values(found)
        room -= len(value)
        return value if room >= 0 else found[0]

    for _ in range(_ROUNDS):
        after = names.sub(put_in, text)
        if after == text or room < 0:
            break
        text = after
    return text


# Yocto: a recipe (NAME_VERSION.bb), what is added to it (.bbappend), what both include (.inc).


_ASSIGNMENT = re.compile(
    r"\s*(?:export\s+)?(?P<name>[A-Za-z_][\w-]*)(?P<suffix>(?::[\w.${}-]+)*)\s*"
    r"(?P<how>\?\?=|\?=|:=|\+=|=\+|\.=|=\.|=)\s*(?P<quote>[\"'])(?P<value>.*)(?P=quote)\s*",
    re.DOTALL,
)
_INCLUDE = re.compile(r"\s*(?:require|include)\s+(\S+)\s*")
_OLD_SUFFIX = re.compile(r"_(append|prepend|remove)((?:_[\w-]+)?)$")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][\w-]*)\}")


#: A comment, or a line with those that it goes on in.
_LINES = re.compile(r"(?:[^\S\n]*#.*|(?P<lines>(?:.*\\\n)*.*))(?:\n|\Z)")


class _Recipe(Struct):
    """The variables of a recipe so far; words of SRC_URI with the line where each stands."""

    where: str
    values: dict[str, str]  # variables
    included: Callable[[str], str | None]  # gives a file that the recipe requires; None for none
    uris: list[tuple[str, str]] = field(default_factory=list)  # (word, where) of SRC_URI
    before: list[tuple[str, str]] = field(default_factory=list)  # of `SRC_URI:prepend`
    after: list[tuple[str, str]] = field(default_factory=list)  # of `SRC_URI:append`
    removed: set[str] = field(default_factory=set)  # words of `SRC_URI:remove`
    folders: list[str] = field(default_factory=list)  # where its files may be
    notes: list[Problem] = field(default_factory=list)  # what was left out
    files: int = 0  # that were included so far

    def expand(self, text: str) -> str:
        return _expanded(text, _VARIABLE, lambda m: self.values.get(m[1], m[0]))

    def read(self, text: str, file: str) -> None:
        for number, line in _logical(text):
            include = _INCLUDE.fullmatch(line)
            if include is not None:
                self.include(self.expand(include[1]), f"{file}:{number}")
            elif (found := _ASSIGNMENT.fullmatch(line)) is not None:
                self.assign(found, file, number)

    def include(self, name: str, place: str) -> None:
        other = self.included(name)
        if other is None:
            _left_out(self.notes, f"{name} is not beside it", place, "import it, too")
        elif self.files == _MOST_FILES:
            _left_out(self.notes, f"{name}, as {_MOST_FILES} files were included before", place)
        else:
            self.files += 1
            self.read(other, name)

    def assign(self, found: re.Match[str], file: str, number: int) -> None:
        name, suffix, value = found["name"], found["suffix"], found["value"]
        old = _OLD_SUFFIX.search(name)
        if old is not None:
            name, suffix = name[: old.start()], f":{old[1]}{old[2].replace('_', ':', 1)}"
        if name == "FILESEXTRAPATHS":
            self.folders += [each for each in self.expand(value).split(":") if each]
        elif name != "SRC_URI":
            if not suffix and (found["how"] not in ("?=", "??=") or name not in self.values):
                self.values[name] = value
        else:
            first = line_of(found.string, found.start("value"), number)
            words = list(_words(value, file, first))
            self.add(words, suffix.split(":")[1:], found["how"], f"{file}:{number}")

    def add(self, words: list[tuple[str, str]], suffix: list[str], how: str, place: str) -> None:
        operation = suffix[0] if suffix and suffix[0] in ("append", "prepend", "remove") else ""
        override = suffix[1:] if operation else suffix
        if override:
            if any(_is_patch(*_uri(self.expand(word))) for word, _ in words):
                _left_out(self.notes, f"patches that only {':'.join(override)} has", place)
        elif operation == "remove":
            self.removed |= {self.expand(word) for word, _ in words}
        elif operation == "append":
            self.after += words
        elif operation == "prepend":
            self.before = words + self.before
        elif how in ("+=", ".="):
            self.uris += words
        elif how in ("=+", "=."):
            self.uris = words + self.uris
        elif how in ("=", ":=") or not self.uris:
            self.uris = words


def read_recipe(text: str, name: str, included: Callable[[str], str | None]) -> PatchList:
    """The patches of a recipe's SRC_URI; `included` gives a file that it requires, None for none.

    What stands between the pieces of a value is no matter: BitBake's order is kept, appended
    words last.
    """
    package, _, version = PurePosixPath(name).stem.partition("_")
    base = package.removesuffix("-native").removeprefix("nativesdk-")
    known = {"PN": package, "BPN": base, "PV": version, "BP": f"{base}-{version}", "THISDIR": "."}
    recipe = _Recipe(name, known, included)
    recipe.read(text, name)
    patches = []
    for word, where in (*recipe.before, *recipe.uris, *recipe.after):
        uri = recipe.expand(word)
        if uri not in recipe.removed and (patch := _from_uri(uri, where, recipe.notes)):
            patches.append(patch)
    folders = [f"{base}-{version}", base, package, "files", "."]
    own = [str(PurePosixPath(each)) for each in recipe.folders if "$" not in each]
    inner = [each for each in own if each == "." or is_listed_name(each)]
    return PatchList(
        "Yocto recipe", tuple(patches), tuple(dict.fromkeys(inner + folders)), tuple(recipe.notes)
    )


def _uri(text: str) -> tuple[str, str, dict[str, str]]:
    """(scheme, path, parameters) of a word of SRC_URI."""
    path, *parameters = text.split(";")
    scheme, mark, rest = path.partition("://")
    pairs = (each.partition("=")[::2] for each in parameters)
    return (scheme, rest, dict(pairs)) if mark else ("", path, dict(pairs))


def _is_patch(scheme: str, path: str, parameters: Mapping[str, str]) -> bool:
    apply = parameters.get("apply", "")
    plain = path
    for ending in _COMPRESSED:
        plain = plain.removesuffix(ending)
    return bool(scheme) and apply != "no" and (apply == "yes" or plain.endswith(_PATCH))


def _from_uri(text: str, where: str, notes: list[Problem]) -> ListedPatch | None:
    scheme, path, parameters = _uri(text)
    if not _is_patch(scheme, path, parameters):
        return None
    level = parameters.get("striplevel", parameters.get("pnum", "1"))
    folder = parameters.get("patchdir", "${S}")
    odd = {"maxrev", "minrev", "rev", "notrev", "mindate", "maxdate"} & parameters.keys()
    if scheme != "file":
        _left_out(notes, f"{path} is fetched from elsewhere", where, "fetch and import it")
    elif not _is_file(path, path, where, notes):
        pass
    elif odd or folder not in ("${S}", ".", "${UNPACKDIR}", "${WORKDIR}"):
        why = ", ".join(sorted(odd)) or f"patchdir={folder}"
        _left_out(notes, f"{path} has {why}", where)
    elif not re.fullmatch(r"\d{1,2}", level):
        _left_out(notes, f"{path} has striplevel={level}", where)
    else:
        return ListedPatch(path, int(level), where)
    return None


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """(number of the first, text) of lines, each joined by newlines with those that go on."""
    number = 1
    for found in _LINES.finditer(text):
        if found["lines"] is not None:
            yield number, found["lines"].replace("\\\n", "\n")
        number += found[0].count("\n")


def _words(value: str, file: str, first: int) -> Iterator[tuple[str, str]]:
    for found in re.finditer(r"\S+", value):
        yield found[0], f"{file}:{line_of(value, found.start(), first)}"


def line_of(text: str, at: int, first: int) -> int:
    """The number of the line at an offset of a text that begins at line `first`."""
    return first + text.count("\n", 0, at)


# RPM: a spec's Patch lines say which, its %prep says how.


_TAG = re.compile(r"(?P<tag>[A-Za-z]+)(?P<number>\d{0,6})\s*:\s*(?P<value>.*\S)\s*")
_DEFINED = re.compile(r"\s*%(?:global|define)\s+(?P<name>\w+)\s+(?P<value>.*\S)\s*")
_MACRO = re.compile(r"%\{(?P<maybe>\??)(?P<braced>\w+)\}|%(?P<bare>[A-Za-z_]\w+)")
_SECTIONS = (
    *("prep", "build", "install", "check", "files", "changelog", "description", "package"),
    *("patchlist", "sourcelist", "pre", "post", "preun", "postun", "generate_buildrequires"),
    *("conf", "clean", "triggerin", "pretrans", "posttrans"),
)
_SECTION = re.compile(rf"%({'|'.join(_SECTIONS)})\b.*")
_APPLY = re.compile(r"\s*%patch(?P<number>\d{0,6})(?P<options>(?:\s.*)?)")
_AUTO = re.compile(r"\s*%(?P<macro>autosetup|autopatch)\b(?P<options>.*)")
_BY_HAND = re.compile(r".*%\{(?:PATCH|P:\s*)(?P<number>\d{1,6})\}.*")
_ALL = re.compile(r"\s*git\s+(?:am|apply)\b.*%\{patches\}.*")


class _Spec(Struct):
    """A spec so far: what it declares by number, what it applies with how many folders off."""

    file: str  # its name, for messages
    macros: dict[str, str] = field(default_factory=dict)  # name -> value
    #: Number -> (file, where, whether on some builds only).
    declared: dict[int, tuple[str, str, bool]] = field(default_factory=dict)
    applied: list[tuple[int, int]] = field(default_factory=list)  # (number, folders off), in order
    notes: list[Problem] = field(default_factory=list)  # what was left out
    section: str = ""  # "" before the first
    depth: int = 0  # how many %if are open

    def expand(self, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            name = found["braced"] or found["bare"]
            return self.macros.get(name, "" if found["maybe"] else found[0])

        return _expanded(text, _MACRO, value)

    def read(self, line: str, where: str) -> None:
        word = line.strip()
        if re.match(r"%if", word):
            self.depth += 1
        elif re.match(r"%endif", word):
            self.depth = max(0, self.depth - 1)
        elif (section := _SECTION.fullmatch(word)) is not None:
            self.section = section[1]
        elif (defined := _DEFINED.fullmatch(line)) is not None:
            self.macros[defined["name"]] = defined["value"]
        elif self.section in ("", "package"):
            self.tag(line, where)
        elif self.section == "patchlist" and word and not word.startswith("#"):
            self.declare(self.next, word, where)
        elif self.section == "prep" and not word.startswith("#"):
            self.prepare(line, where)

    @property
    def next(self) -> int:
        return max(self.declared, default=-1) + 1

    def tag(self, line: str, where: str) -> None:
        found = _TAG.fullmatch(line)
        if found is None:
            return
        tag = found["tag"].lower()
        if tag == "patch":
            number = int(found["number"]) if found["number"] else self.next
            self.declare(number, found["value"].split()[0], where)
        elif tag in ("name", "version", "release"):
            self.macros.setdefault(tag, found["value"])

    def declare(self, number: int, value: str, where: str) -> None:
        self.declared[number] = value, where, self.depth > 0

    def prepare(self, line: str, where: str) -> None:
        if (auto := _AUTO.fullmatch(line)) is not None:
            self.all(auto["options"], where, none=auto["macro"] == "autosetup")
        elif _ALL.fullmatch(line):
            self.all("-p1", where, none=False)
        elif (one := _APPLY.fullmatch(line)) is not None:
            options = one["options"]
            numbers = [int(one["number"])] if one["number"] else _numbers(options)
            self.apply(numbers or [0], options, where)
        elif (hand := _BY_HAND.fullmatch(line)) is not None:
            self.apply([int(hand["number"])], line, where)

    def all(self, options: str, where: str, *, none: bool) -> None:
        if none and re.search(r"(?:^|\s)-N\b", options):
            return
        least, most = (re.search(rf"(?:^|\s)-{each}\s*(\d{{1,6}})\b", options) for each in "mM")
        chosen = [
            number
            for number in sorted(self.declared)
            if (least is None or number >= int(least[1]))
            and (most is None or number <= int(most[1]))
        ]
        self.apply(chosen, re.sub(r"(?:^|\s)-[mM]\s*\d+", " ", options), where)

    def apply(self, numbers: list[int], options: str, where: str) -> None:
        odd = re.search(r"(?:^|\s)(-R|--reverse|-d|--directory)\b", options)
        level = re.search(r"(?:^|\s)(?:-p|--strip=?)\s*(\d{1,2})\b", options)
        for number in numbers:
            if number not in self.declared:
                hint = "is the patch named in a file that this one includes?"
                raise BadInputError(Problem(f"no Patch{number} is declared", where, hint))
            name, place, sometimes = self.declared[number]
            if self.depth or odd is not None:
                why = "on some builds only" if odd is None else f"with {odd[1]}"
                _left_out(self.notes, f"{name} is applied {why}", where)
            elif sometimes:
                _left_out(self.notes, f"{name} is there on some builds only", place)
            else:
                self.applied.append((number, int(level[1]) if level else 0))


def read_spec(text: str, name: str) -> PatchList:
    """The patches of an RPM spec in the order in which %prep applies them.

    BadInputError where it declares patches and applies none that can be seen.
    """
    spec = _Spec(name)
    for number, line in _logical(text):
        spec.read(line.replace("\n", " "), f"{name}:{number}")
    if spec.declared and not spec.applied and not spec.notes:
        what = "declares patches, and %prep applies none that can be seen"
        hint = "%autosetup -p1, %autopatch, %patch -P N or git am %{patches}"
        raise BadInputError(Problem(what, name, hint))
    patches = []
    for number, strip in spec.applied:
        value, where, _ = spec.declared[number]
        file = spec.expand(value).rpartition("/")[2]
        if _is_file(file, value, where, spec.notes):
            patches.append(ListedPatch(file, strip, where))
    return PatchList("RPM spec", tuple(patches), (".", "../SOURCES"), tuple(spec.notes))


def _numbers(options: str) -> list[int]:
    """What %patch names: `-P 3`, `-P3`, and numbers that stand alone."""
    named = re.findall(r"(?:^|\s)-P\s*(\d{1,6})\b", options)
    rest = re.sub(r"(?:^|\s)-[A-Za-z]\s*\S*", " ", options)
    return [int(each) for each in (*named, *re.findall(r"(?:^|\s)(\d{1,6})(?=\s|$)", rest))]


# The same, written: what a recipe or a spec is to say of patches in one folder.


def recipe_lines(names: list[str]) -> str:
    """A .bbappend for patches in `files/` beside it."""
    rows = "".join(
        f"    file://{name}{'' if name.endswith(_PATCH) else ';apply=yes'} \\\n" for name in names
    )
    return f'FILESEXTRAPATHS:prepend := "${{THISDIR}}/files:"\n\nSRC_URI += "\\\n{rows}"\n'


def spec_lines(names: list[str]) -> str:
    """Lines for a spec: the declarations, and as a comment how to apply them."""
    rows = "".join(f"Patch{number}: {name}\n" for number, name in enumerate(names, 1))
    return f"# in %prep: %autosetup -p1\n{rows}"
