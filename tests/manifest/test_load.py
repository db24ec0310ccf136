"""Manifests load whole or not at all: every mistake is told with its place, and with a hint."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.errors import BadInputError
from patchkit.manifest.keys import struct_data
from patchkit.manifest.load import (
    MAXIMUM_EXTENDS,
    Inspection,
    inspect_manifest,
    load_manifest,
)
from patchkit.manifest.values import GitPin, GitSource, IndexSource, LocalSeries, Manifest
from patchkit.manifest.write import yaml_text
from patchkit.manifest.yaml_nodes import MAXIMUM_BYTES, Items, Node, Scalar, decode, parse
from patchkit.model.objects import CommitId
from tests.support.laws import share
from tests.support.projects import write_files

DATA = Path(__file__).parent.parent / "data" / "manifests"
INVALID = sorted((DATA / "invalid").glob("*.yaml"))
VALID = sorted((DATA / "valid").glob("*.yaml"))
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def expected(path: Path, word: str) -> list[str]:
    """The messages that a file's first lines announce."""
    head = path.read_bytes().decode("utf-8", "replace")
    return re.findall(rf"^# {word}: (.*)$", head, re.MULTILINE)


def inspect(path: Path, monkeypatch: pytest.MonkeyPatch) -> Inspection:
    """As a user does who stands in the manifest's folder, so that messages are short."""
    monkeypatch.chdir(path.parent)
    return inspect_manifest(Path(path.name))


def load_text(text: str | bytes, name: str = "m.yaml") -> Manifest:
    data = text if isinstance(text, bytes) else text.encode()
    Path(name).write_bytes(data)
    return load_manifest(Path(name))


def minimal(extra: str = "", **keys: str) -> str:
    values = {"source": '{git: "https://example.com/a.git"}', "pin": COMMIT} | keys
    lines = "".join(f"    {key}: {value}\n" for key, value in values.items())
    return f"version: 1\ncomponents:\n  a:\n{lines}{extra}"


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_each_mistake_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inspection = inspect(path, monkeypatch)
    assert inspection.manifest is None
    assert [str(problem) for problem in inspection.problems] == expected(path, "error")
    assert all(problem.hint for problem in inspection.problems), "a hint for every mistake"


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_valid_manifests_load_and_what_is_shown_of_them(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inspection = inspect(path, monkeypatch)
    assert inspection.problems == ()
    assert [str(problem) for problem in inspection.warnings] == expected(path, "warning")
    assert inspection.manifest is not None
    data = struct_data(inspection.manifest)
    shown = tmp_path / path.name
    shown.write_text(yaml_text(data))
    assert yaml.safe_load(shown.read_text()) == data
    assert struct_data(load_manifest(shown)) == data


def test_every_problem_of_every_file_is_in_the_exception() -> None:
    path = DATA / "invalid" / "everything_at_once.yaml"
    problems = refused(lambda: load_manifest(path)).problems
    lines = [problem.where.rpartition(":")[2] for problem in problems]
    assert len(lines) == len(expected(path, "error")) >= 5
    assert lines == sorted(lines, key=int)


def test_both_yaml_readers_give_the_same_nodes() -> None:
    for path in VALID:
        text = decode(path.read_bytes(), path)
        fast = parse(text, path)
        assert _outline(parse(text, path, loader=yaml.SafeLoader)) == _outline(fast)


def _outline(node: Node) -> object:
    """A node without the ends of blocks, which YAML readers place differently."""
    if isinstance(node, Scalar):
        return node
    if isinstance(node, Items):
        return (node.where, [_outline(item) for item in node.items])
    return (node.where, [(key, _outline(value)) for key, value in node.entries])


def refused(load: Callable[[], object]) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        load()
    return caught.value


def test_defaults_and_places() -> None:
    (component,) = load_text(minimal(), "places.yaml").components
    assert (component.checkout, component.subdirectory, component.track) == ("a", "", None)
    assert (component.strip, component.patches, component.install) == (1, (), ())
    assert (component.where.line, component.where.column) == (3, 3)
    assert (component.pin_where.line, component.pin_where.column) == (5, 10)


def test_paths_are_written_one_way() -> None:
    text = minimal("    patches: [{series: ./patches//a/series}]\n", subdirectory="./src//x/")
    (component,) = load_text(text).components
    (entry,) = component.patches
    assert isinstance(entry, LocalSeries)
    assert (component.subdirectory, entry.path) == ("src/x", "patches/a/series")
    assert str(entry.where) == "m.yaml:7"


def test_the_root_is_the_parent_of_a_folder_named_manifests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("manifests", "workspace"):
        Path(folder).mkdir()
    inner = load_text(minimal(), "manifests/m.yaml")
    outer = load_text(minimal(), "m.yaml")
    assert inner.root == outer.root == tmp_path
    assert inner.path == tmp_path / "manifests" / "m.yaml"
    assert inner.lock_path == tmp_path / "manifests" / "m.lock.json"
    monkeypatch.chdir("workspace")  # from where the path goes up
    manifest = load_manifest(Path("../manifests/m.yaml"))
    assert (manifest.root, manifest.path) == (tmp_path.resolve(), inner.path.resolve())
    assert str(manifest.components[0].where) == "../manifests/m.yaml:3"


@pytest.mark.parametrize(
    ("file", "url", "path"),
    [("manifests/m.yaml", "../up-stream/a", "up-stream/a"), ("m.yaml", "./a", "my%20project/a")],
)
def test_relative_urls_start_from_the_project(
    tmp_path: Path, file: str, url: str, path: str
) -> None:
    """Blanks are escaped."""
    write_files(tmp_path / "my project", {file: minimal(source=f"{{git: {url}}}")})
    (component,) = load_manifest(tmp_path / "my project" / file).components
    assert component.source == GitSource(f"file://{tmp_path}/{path}")


# --- extends


def load_parts(main: str, **parts: str) -> Manifest:
    write_files(Path("manifests"), {f"{name}.yaml": text for name, text in parts.items()})
    return load_text(main, "manifests/m.yaml")


def test_what_a_manifest_says_wins_over_its_parts_and_a_later_part_over_others() -> None:
    own = 'environment:\n  versions: {torch: "==2.9.0"}\n'
    part = 'version: 1\nenvironment:\n  variables: {A: "%s"}\n'
    manifest = load_parts(
        minimal(f"extends: [one.yaml, two.yaml]\n{own}").replace("  a:", "  b:"),
        one=part % "one"
        + '  versions: {python: ">=3.10", torch: "==2.8.0"}\n'
        + minimal("description: of the part\n").removeprefix("version: 1\n"),
        two=part % "two",
    )
    assert manifest.environment.versions == {"python": ">=3.10", "torch": "==2.9.0"}
    assert manifest.environment.variables == {"A": "two"}
    assert [each.name for each in manifest.components] == ["a", "b"]
    assert manifest.description == ""  # of another file


def test_a_component_is_merged_key_by_key() -> None:
    """Its pin is taken whole; lists are replaced, and a source of another kind."""
    stack = minimal("    patches: [{series: patches/a/series}]\n")
    main = "version: 1\nextends: [stack.yaml]\ncomponents:\n  a:\n"
    other = "f" * 40
    (component,) = load_parts(f"{main}    pin: {other}\n    strip: 2\n", stack=stack).components
    assert (component.pin, component.strip) == (GitPin(CommitId(other)), 2)
    assert component.source == GitSource("https://example.com/a.git")
    assert component.pin_where.file == Path("manifests/m.yaml")
    (entry,) = component.patches
    assert entry.where.file == Path("manifests/stack.yaml")

    pin = '{version: "1.0", sha256: ' + "ab" * 32 + "}"
    main += f"    patches: []\n    source: {{index: demo}}\n    pin: {pin}\n"
    (component,) = load_parts(main, stack=stack).components
    assert (component.source, component.patches) == (IndexSource("demo"), ())


def test_a_problem_in_a_part_that_is_covered_is_told_all_the_same() -> None:
    main, stack = minimal("extends: [stack.yaml]\n"), minimal().replace(COMMIT, "main")
    (problem,) = refused(lambda: load_parts(main, stack=stack)).problems
    assert problem.where == "manifests/stack.yaml:5"


def test_what_two_files_say_together_is_told_with_both_places() -> None:
    versions = 'environment:\n  versions: {%s: "==2.8.0"}\n'
    main = minimal("extends: [p.yaml]\n" + versions % "torch-npu")
    assert str(refused(lambda: load_parts(main, p="version: 1\n" + versions % "torch_npu"))) == (
        "manifests/m.yaml:8: torch-npu is the same package as torch_npu in manifests/p.yaml:3"
    )


def test_parts_that_share_parts_are_read_in_good_time() -> None:
    """Eight levels of two parts each would be 256 readings of the last."""
    last = MAXIMUM_EXTENDS - 1
    parts = {f"{side}{last}": "version: 1\n" for side in "lr"}
    for n in range(1, last):
        both = f"version: 1\nextends: [l{n + 1}.yaml, r{n + 1}.yaml]\n"
        parts |= {f"l{n}": both, f"r{n}": both}
    start = time.process_time()
    assert load_parts(minimal("extends: [l1.yaml, r1.yaml]\n"), **parts).name == "m"
    assert time.process_time() - start < 1.0


# --- the file itself


def test_what_is_no_file_or_too_large_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="larger than 1024 KiB"):
        load_text(minimal() + "#" * MAXIMUM_BYTES)
    for path in (tmp_path, tmp_path / "gone.yaml"):
        assert str(path) in str(refused(partial(load_manifest, path)))


def test_a_large_manifest_loads_fast() -> None:
    component = minimal("    patches: [{series: patches/NAME/series}]\n").partition("ts:\n")[2]
    names = [f"c{n}" for n in range(200)]
    blocks = [component.replace("  a:", f"  {n}:").replace("NAME", n) for n in names]
    start = time.process_time()
    manifest = load_text("version: 1\ncomponents:\n" + "".join(blocks))
    assert [each.name for each in manifest.components] == names  # in their order
    assert time.process_time() - start < 1.0


def test_what_is_behind_a_symbolic_link_out_of_the_project_is_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {"elsewhere/part.yaml": "version: 1\n", "project/real/series": ""})
    root = tmp_path / "project"
    (root / "patches").symlink_to(tmp_path / "elsewhere")
    for extra, said in (
        ("    patches: [{series: patches/series}]\n", "leads out of the project"),
        ("    patches: [{patch: patches/x.patch}]\n", "leads out of the project"),
        ("extends: [patches/part.yaml]\n", "outside of the project"),
    ):
        write_files(root, {"m.yaml": minimal(extra)})
        with pytest.raises(BadInputError, match=said):
            load_manifest(root / "m.yaml")
    (root / "patches").unlink()
    (root / "patches").symlink_to("real")  # inside it may lead anywhere
    write_files(root, {"m.yaml": minimal("    patches: [{series: patches/series}]\n")})
    assert len(load_manifest(root / "m.yaml").components[0].patches) == 1


def test_a_message_has_no_secret_and_is_a_short_line() -> None:
    source = '{git: "https://user:hunter2@example.com/a b", mirror: "https://t0ken@h/x"}'
    error = refused(lambda: load_text(minimal(source=source)))
    told = str(error) + "".join(problem.hint for problem in error.problems)
    assert ("hunter2" in told, "t0ken" in told) == (False, False)
    wild = minimal(pin='"' + "x\\e[31m" * 40 + '"')
    said = str(refused(lambda: load_text(wild)))
    assert ("\x1b" in said, len(said) < 150) == (False, True)


_FULL_OF_MISTAKES = {
    "unknown keys": "".join(f"verson{n}: x\n" for n in range(20_000)),
    "no source": "components:\n" + "".join(f"  c{n:05}: {{}}\n" for n in range(20_000)),
    "no mapping": "components:\n" + "".join(f"  C{n:05}: 1\n" for n in range(20_000)),
    "no step": minimal().partition("\n")[2]
    + "    verify:\n"
    + "".join(f"      - {{presnt: {n}}}\n" for n in range(12_000)),
    "no target": minimal().partition("\n")[2]
    + "    overrides:\n"
    + "".join(f"      - {{target: x{n}, rule: r.yml, packages: [a]}}\n" for n in range(5_000)),
    "no value": minimal().partition("\n")[2]
    + "    environment:\n      variables:\n"
    + "".join(f"        V{n}: ${{x{n}}}\n" for n in range(10_000)),
    "control characters": "".join("description: \x01\n" for n in range(20_000)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", _FULL_OF_MISTAKES)
def test_a_file_full_of_mistakes_is_told_in_good_time(kind: str) -> None:
    """The first twenty, and how many more there are: no work grows faster than the file."""
    text = "version: 1\n" + _FULL_OF_MISTAKES[kind]
    start = time.process_time()
    *first, last = refused(lambda: load_text(text)).problems
    assert time.process_time() - start < 1.5  # 0.5 s on an idle machine
    assert (len(first), str(last).endswith(" more problems")) == (20, True)


# --- whatever is in the file, the answer is a manifest or a BadInputError


SEEDS = [path.read_bytes() for path in (*VALID, *INVALID)]
WORDS = [b"[", b"}", b": ", b"\n", b"- ", b"&a", b"*a", b"<<", b"'", b'"', b"#", b"|", b"\t", b"1"]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A manifest with pieces cut out, put elsewhere, or replaced by what has a meaning."""
    data = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 4))):
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(data))] * 2)))
        piece = draw(st.sampled_from([b"", data[start:end], *WORDS]) | st.binary(max_size=3))
        place = draw(st.integers(0, len(data)))
        end = min(end, start + draw(st.integers(0, 30)))
        data = data[:start] + data[end:]
        data = data[:place] + piece + data[place:]
    return data


@pytest.mark.slow
@given(damaged())
@settings(max_examples=share(150))
def test_a_damaged_file_is_loaded_or_refused(data: bytes) -> None:
    Path("m.yaml").write_bytes(data)
    inspection = inspect_manifest(Path("m.yaml"))
    assert (inspection.manifest is None) == bool(inspection.problems)
    lines = data.count(b"\n") + 1
    for problem in inspection.problems:
        assert str(problem).isprintable()
        file, _, line = problem.where.rpartition(":")
        if file == "m.yaml":
            assert 1 <= int(line) <= lines


@given(damaged())
def test_the_portable_yaml_reader_refuses_in_the_same_way(data: bytes) -> None:
    with contextlib.suppress(BadInputError):
        parse(decode(data, Path("m.yaml")), Path("m.yaml"), loader=yaml.SafeLoader)
