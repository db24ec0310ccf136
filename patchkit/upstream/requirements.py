"""What a component's own metadata asks for: pyproject.toml, setup.cfg, setup.py, PKG-INFO.

Read, never run. Where a file leaves its requirements to code, that is reported: `unread` says why.
"""

from __future__ import annotations

import ast
import configparser
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from email.parser import HeaderParser
from importlib import import_module
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from patchkit.manifest.values import InstallStep, normal_name
from patchkit.model.objects import lines_of
from patchkit.model.syntax import (
    called_name,
    constant_text,
    constant_value,
    module_constants,
    parse_python,
)

#: A file of the component's tree by its path; None if there is none.
ReadFile = Callable[[str], "bytes | None"]

_PIP_INSTALL = re.compile(r"\bpip3?\s+install\b([^\n;&|]*(?:\\\n[^\n;&|]*)*)")
_OWN = re.compile(r"(?:^|\s|['\"])\./?(?:['\"]|\s|$)")
_EXTRAS = re.compile(r"\.\[([A-Za-z0-9_,. -]+)\]")
_OF_EXTRAS = re.compile(r"\s*([\w.-]+)\s*\[\s*([\w., -]*?)\s*\]")
_FILE = re.compile(r"(?:-r|--requirement)[ =]*([^\s'\"]+)")

_COPY = re.compile(r"^cp (\S+) (\S+)$", re.MULTILINE)

_LONGEST = 1000  # characters of a requirement


class DeclaredRequirement(Struct, frozen=True):
    """A requirement, and the file that has it.

    `enforced`: an install step makes pip follow it. `certain`: the file is what pip goes by, and
    not what the requirements were when somebody built a release.
    """

    requirement: Requirement
    file: str
    enforced: bool
    certain: bool = True

    @property
    def name(self) -> str:
        """The normal name of the package that is asked for."""
        return normal_name(self.requirement.name)


class DeclaredRequirements(Struct, frozen=True):
    """All that a component asks for: `python` is its specifier, `unread` what stays unknown."""

    requirements: tuple[DeclaredRequirement, ...]  # in the order of the files
    python: str
    python_file: str  # the file that has `python`; "" for none
    unread: tuple[str, ...]


class _Installation(Struct, frozen=True):
    """A `pip install` of a step, run in `folder`: `own` of the component itself, and of `files`.

    `enforced`: dependencies come with it.
    """

    folder: str
    own: bool
    enforced: bool
    extras: frozenset[str] = frozenset()  # of the component's own
    files: tuple[str, ...] = ()


class FileMetadata(Struct, frozen=True):
    """What one file says of a project.

    `lines` are requirements, None where it says nothing of them. `version` may
    say where it stands, as in setup.cfg: "attr: a.b", "file: VERSION".
    """

    lines: Sequence[str] | None
    python: str = ""  # specifier; "" for none
    unread: str = ""  # why the rest is unknown; "" for nothing
    certain: bool = True  # pip goes by this file
    project: str = ""  # its name; "" for unknown
    version: str = ""
    extras: Mapping[str, Sequence[str]] = {}  # extra -> its requirements

    def with_extras(self, wanted: Iterable[str]) -> FileMetadata:
        """The requirements of extras among the others; an extra may take others of its project."""
        lines, left, taken = [*(self.lines or ())], sorted(wanted), set[str]()
        while left:
            extra = left.pop(0)
            new = () if extra in taken else self.extras.get(extra, ())
            taken.add(extra)
            for line in new:
                own = _OF_EXTRAS.match(line)
                if own is not None and normal_name(own[1]) == normal_name(self.project):
                    left += re.split(r"[,\s]+", own[2])
                else:
                    lines.append(line)
        return replace(self, lines=lines)


def read_requirements(read: ReadFile, steps: Sequence[InstallStep]) -> DeclaredRequirements:
    """What a component asks for as its install steps install it; without steps: as it stands."""
    read = _as_copied(read, steps)
    requirements: dict[DeclaredRequirement, None] = {}
    unread: list[str] = []
    python = python_file = ""
    for each in [*_installations(steps)] or [_Installation("", own=True, enforced=False)]:
        for file, told in (*_metadata(read, each), *_requirement_files(read, each)):
            if told.unread and each.enforced:
                unread.append(f"{file}: {told.unread}")
            if not python and len(told.python) <= _LONGEST:
                python, python_file = told.python, file if told.python else ""
            for line in told.lines or ():
                try:
                    if len(line) > _LONGEST:
                        raise InvalidRequirement(line)
                    wish = Requirement(line)
                except InvalidRequirement:
                    unread.append(f"{file}: {line[:_LONGEST]!r} is not a valid requirement")
                else:
                    requirements[DeclaredRequirement(wish, file, each.enforced, told.certain)] = (
                        None
                    )
    return DeclaredRequirements((*requirements,), python, python_file, (*unread,))


def _as_copied(read: ReadFile, steps: Sequence[InstallStep]) -> ReadFile:
    """The component as steps leave it that copy a file over another: `cp other.toml this.toml`."""
    copies = {
        _below(step.directory, to): _below(step.directory, path)
        for step in steps
        for path, to in _COPY.findall(step.run)
    }
    return lambda path: read(copies.get(path) or path)


def followed(steps: Sequence[InstallStep]) -> list[tuple[str, str]]:
    """What of a component steps install with all that its metadata asks for: (folder, "[extras]"),
    "" for no extras.
    """
    own = [each for each in _installations(steps) if each.own and each.enforced]
    return [(each.folder, f"[{','.join(each.extras)}]" if each.extras else "") for each in own]


def named_by_steps(steps: Sequence[InstallStep], *, alone: bool = False) -> Iterator[str]:
    """The requirements that steps write out: `pip install 'peft>=0.15'`; with `alone` those that
    they install whatever others ask for: `pip install --no-deps 'peft>=0.15'`.
    """
    for call in (call[1] for step in steps for call in _PIP_INSTALL.finditer(step.run)):
        for word in re.findall(r"'[^']*'|\"[^\"]*\"|\S+", _FILE.sub("", call)):
            with suppress(InvalidRequirement):
                if ("--no-deps" in call) == alone:
                    yield str(Requirement(word.strip("'\"")))


def _installations(steps: Sequence[InstallStep]) -> Iterator[_Installation]:
    for step in steps:
        for call in _PIP_INSTALL.finditer(step.run):
            words = call[1]
            extras = _EXTRAS.search(words)
            own = extras is not None or _OWN.search(words) is not None
            files = tuple(_FILE.findall(words))
            if own or files:
                names = re.split(r"[,\s]+", extras[1]) if extras else ()
                enforced = "--no-deps" not in words
                yield _Installation(step.directory, own, enforced, frozenset(names), files)


def _metadata(read: ReadFile, where: _Installation) -> Iterator[tuple[str, FileMetadata]]:
    """The first file of a component's own that says something, with its path."""
    prefix = f"{where.folder}/" if where.folder else ""
    for file, told in files_metadata(read, prefix) if where.own else ():
        if told.lines is None:
            continue
        yield file, told.with_extras(where.extras)
        # where code makes the requirements, it probably reads them from this file
        computed = where.enforced and told.unread and not told.lines
        guessed = read(f"{prefix}requirements.txt") if computed else None
        if guessed is not None:
            lines = _requirement_lines(guessed)
            yield f"{prefix}requirements.txt", FileMetadata(lines, certain=False)
        return


def files_metadata(read: ReadFile, prefix: str) -> Iterator[tuple[str, FileMetadata]]:
    """The files of a project that are there, by their paths, in the order in which they count."""
    for name, parse in (
        ("pyproject.toml", _pyproject),
        ("PKG-INFO", _pkg_info),
        ("setup.cfg", _setup_cfg),
        ("setup.py", _setup_py),
    ):
        data = read(prefix + name)
        if data is not None:
            yield prefix + name, parse(data.decode("utf-8", "replace"))


def _pyproject(text: str) -> FileMetadata:
    try:
        tomllib = import_module("tomllib")
    except ImportError:
        return FileMetadata((), unread="run patchkit on Python 3.11 or later to read it")
    try:
        told = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return FileMetadata((), unread=f"not TOML: {error}")
    project = _table(told, "project")
    by_build = "dependencies" in _texts(project.get("dynamic"))  # or code will make them
    place = _table(told, "tool", "setuptools", "dynamic", "version")
    file = place.get("file")
    files = ",".join([file] if isinstance(file, str) else _texts(file))
    where = f"file: {files}" if files else f"attr: {place.get('attr', '')}"
    return FileMetadata(
        None if by_build or not project else _texts(project.get("dependencies")),
        str(project.get("requires-python", "")),
        project=constant_text(project.get("name")),
        version=constant_text(project.get("version")) or where,
        extras={
            extra: _texts(lines)
            for extra, lines in _table(project, "optional-dependencies").items()
        },
    )


def _table(told: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        below = told.get(name)
        told = below if isinstance(below, dict) else {}
    return told


def _pkg_info(text: str) -> FileMetadata:
    headers = HeaderParser().parsestr(text)
    own: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in headers.get_all("Requires-Dist", ()):
        extra = re.search(r"\s*(?:and\s+)?extra\s*==\s*['\"]([^'\"]+)['\"]", line)
        if extra is None:
            own.append(line)
        else:
            plain = line.replace(extra[0], "").rstrip("; ")
            extras.setdefault(extra[1], []).append(plain)
    return FileMetadata(
        own if own or extras else None,
        headers.get("Requires-Python", ""),
        certain=False,  # pyproject.toml was looked at before: its build may make others here
        project=headers.get("Name", ""),
        version=headers.get("Version", ""),
        extras=extras,
    )


def _setup_cfg(text: str) -> FileMetadata:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        return FileMetadata((), unread=f"not readable: {lines_of(error.message)[0]}")

    def lines(section: str, option: str) -> list[str]:
        told = lines_of(parser.get(section, option, fallback=""))
        return [line for line in told if line.strip() and line[0] != "#"]

    section = "options.extras_require"
    there = parser.has_option("options", "install_requires")
    return FileMetadata(
        lines("options", "install_requires") if there else None,
        parser.get("options", "python_requires", fallback=""),
        project=parser.get("metadata", "name", fallback="").strip(),
        version=parser.get("metadata", "version", fallback="").strip(),
        extras={
            name: lines(section, name)
            for name in (parser.options(section) if parser.has_section(section) else ())
        },
    )


def _setup_py(text: str) -> FileMetadata:
    found = _setup_arguments(text)
    if found is None:
        return FileMetadata((), unread="not Python that can be read")
    lines = found.get("install_requires", ())
    if not isinstance(lines, tuple) or not all(isinstance(line, str) for line in lines):
        lines = None
    return FileMetadata(
        lines or (),
        unread="its requirements are computed by code" if lines is None else "",
        project=constant_text(found.get("name")),
        version=constant_text(found.get("version")),
    )


def _setup_arguments(text: str) -> dict[str, object] | None:
    """What a setup.py says by its constants: `name`, `version` and `install_requires`, if at all.

    A value that code makes is None; None if it is no Python. Requirements may be in any call, such
    as the `dict(...)` whose items `setup` gets; of each the first one counts.
    """
    tree, problem = parse_python(text)
    if problem:
        return None
    found: dict[str, object] = {}
    try:
        known = module_constants(tree)
        for call in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
            for keyword in call.keywords:
                own = called_name(call) == "setup" and keyword.arg in ("name", "version")
                if keyword.arg is not None and (own or keyword.arg == "install_requires"):
                    found.setdefault(keyword.arg, constant_value(keyword.value, known))
    except (RecursionError, MemoryError):  # nested without end
        return None
    return found


def _requirement_files(read: ReadFile, where: _Installation) -> Iterator[tuple[str, FileMetadata]]:
    for name in where.files:
        path = _below(where.folder, name)
        data = None if path is None else read(path)
        if path is None or data is None:
            yield name, FileMetadata((), unread="not in the component")
        else:
            yield path, FileMetadata(_requirement_lines(data))


def _requirement_lines(data: bytes) -> tuple[str, ...]:
    """The requirements of a requirements file, without its options."""
    text = data.decode("utf-8", "replace").replace("\\\n", " ")
    # pip splits them so
    lines = (re.sub(r"(?:^|\s)#.*", "", line).strip() for line in text.splitlines())
    plain = (re.sub(r"\s--[a-z-]+[= ].*", "", line) for line in lines)
    return tuple(line for line in plain if line and not line.startswith(("-", "git+", "http")))


def _below(folder: str, name: str) -> str | None:
    """A path of the component, None for one that leads out of it."""
    path = posixpath.normpath(posixpath.join(folder, name))
    return None if path.split("/")[0] in ("", "..") else path


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


# Version specifiers against versions, those of packages and those of Ascend's software.


def satisfies(version: str, specifier: str) -> bool | None:
    """Whether a version is one that the specifier allows; None if it is no version (PEP 440).

    Ascend's 8.1.RC1 is a version: 8.1rc1. A release candidate counts where it is what is there.
    """
    try:
        return SpecifierSet(specifier).contains(Version(version), prereleases=True)
    except (InvalidVersion, InvalidSpecifier):
        return None


def exact(specifier: str) -> str | None:
    """The only version that a specifier allows; None if it leaves a choice."""
    try:
        clauses = list(SpecifierSet(specifier))
    except InvalidSpecifier:
        return None
    if len(clauses) != 1 or clauses[0].operator not in ("==", "==="):
        return None
    return None if clauses[0].version.endswith("*") else clauses[0].version


# Which Python packages are there because somebody asks for them: by the metadata, read not run.


#: Distributions whose module has another name than they have.
_MODULES = {
    "antlr4-python3-runtime": ("antlr4",),
    "attrs": ("attr", "attrs"),
    "beautifulsoup4": ("bs4",),
    "decord2": ("decord",),
    "gitpython": ("git",),
    "grpcio": ("grpc",),
    "grpcio-health-checking": ("grpc_health",),
    "grpcio-reflection": ("grpc_reflection",),
    "grpcio-tools": ("grpc_tools",),
    "hydra-core": ("hydra",),
    "msgpack-python": ("msgpack",),
    "opencv-python": ("cv2",),
    "opencv-python-headless": ("cv2",),
    "pillow": ("PIL",),
    "protobuf": ("google",),
    "pyjwt": ("jwt",),
    "python-dateutil": ("dateutil",),
    "python-multipart": ("multipart", "python_multipart"),
    "pyyaml": ("yaml",),
    "pyzmq": ("zmq",),
    "scikit-learn": ("sklearn",),
    "triton-ascend": ("triton",),
}


def modules_asked_for(read: ReadFile, steps: tuple[InstallStep, ...]) -> frozenset[str]:
    """The first names of the modules of what a component's metadata asks for."""
    return modules_of(each.requirement.name for each in read_requirements(read, steps).requirements)


def modules_of(distributions: Iterable[str]) -> frozenset[str]:
    """The first names of the modules that distributions have, as a rule or as is known."""
    names: set[str] = set()
    for distribution in distributions:
        name = normal_name(distribution)
        names |= set(_MODULES.get(name, (name.replace("-", "_"),)))
        names.add(distribution)  # as IPython, which is written so in both places
    return frozenset(names)
