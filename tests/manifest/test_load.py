"""Manifests load whole or not at all: every mistake is told with its place, and with a hint."""

from __future__ import annotations

import contextlib
import re
import time
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
def test_valid_manifests_load(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inspection = inspect(path, monkeypatch)
    assert inspection.problems == ()
    assert [str(problem) for problem in inspection.warnings] == expected(path, "warning")
    assert inspection.manifest is not None


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_what_is_shown_loads_to_the_same_values(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    manifest = inspect(path, monkeypatch).manifest
    assert manifest is not None
    data = struct_data(manifest)
    text = yaml_text(data)
    assert yaml.safe_load(text) == data
    shown = tmp_path / path.name
    shown.write_text(text)
    assert struct_data(load_manifest(shown)) == data


def test_every_problem_of_every_file_is_in_the_exception() -> None:
    path = DATA / "invalid" / "everything_at_once.yaml"
    with pytest.raises(BadInputError) as caught:
        load_manifest(path)
    lines = [problem.where.rpartition(":")[2] for problem in caught.value.problems]
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


def test_defaults() -> None:
    (component,) = load_text(minimal()).components
    assert component.checkout == "a"
    assert component.strip == 1
    assert component.subdirectory == ""
    assert component.track is None
    assert (component.patches, component.install) == ((), ())


def test_places_point_at_what_they_name() -> None:
    text = minimal("    patches:\n      - series: patches/a/series\n")
    (component,) = load_text(text, "places.yaml").components
    assert (component.where.line, component.where.column) == (3, 3)
    assert (component.pin_where.line, component.pin_where.column) == (5, 10)
    assert str(component.patches[0].where) == "places.yaml:7"


def test_order_of_components_is_kept() -> None:
    names = ["zeta", "alpha", "mid"]
    blocks = [minimal().partition("components:\n")[2].replace("  a:", f"  {n}:") for n in names]
    manifest = load_text("version: 1\ncomponents:\n" + "".join(blocks))
    assert [each.name for each in manifest.components] == names


def test_the_root_is_the_parent_of_a_folder_named_manifests(tmp_path: Path) -> None:
    Path("manifests").mkdir()
    inner = load_text(minimal(), "manifests/m.yaml")
    outer = load_text(minimal(), "m.yaml")
    assert inner.root == outer.root == tmp_path
    assert inner.path == tmp_path / "manifests" / "m.yaml"
    assert inner.lock_path == tmp_path / "manifests" / "m.lock.json"


def test_a_path_that_goes_up_has_a_plain_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("manifests", "workspace"):
        Path(folder).mkdir()
    Path("manifests/m.yaml").write_text(minimal())
    monkeypatch.chdir("workspace")
    manifest = load_manifest(Path("../manifests/m.yaml"))
    assert manifest.root == tmp_path.resolve()
    assert manifest.path == tmp_path.resolve() / "manifests" / "m.yaml"
    assert str(manifest.components[0].where) == "../manifests/m.yaml:3"


def test_relative_urls_start_from_the_project(tmp_path: Path) -> None:
    Path("manifests").mkdir()
    manifest = load_text(
        minimal(source="{git: ../up stream/a}".replace(" s", "-s")), "manifests/m.yaml"
    )
    assert manifest.components[0].source == GitSource(f"file://{tmp_path.parent}/up-stream/a")


def test_a_blank_in_a_relative_url_is_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "my project"
    folder.mkdir()
    (folder / "m.yaml").write_text(minimal(source="{git: ./a}"))
    source = load_manifest(folder / "m.yaml").components[0].source
    assert source == GitSource(f"file://{tmp_path}/my%20project/a")


def test_paths_are_written_one_way() -> None:
    text = minimal("    patches: [{series: ./patches//a/series}]\n", subdirectory="./src//x/")
    (component,) = load_text(text).components
    assert component.subdirectory == "src/x"
    entry = component.patches[0]
    assert isinstance(entry, LocalSeries)
    assert entry.path == "patches/a/series"


# --- extends


def load_parts(files: dict[str, str]) -> Manifest:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    return load_manifest(Path("manifests/m.yaml"))


def test_what_a_manifest_says_wins_over_its_parts() -> None:
    manifest = load_parts(
        {
            "manifests/parts/p.yaml": "version: 1\nenvironment:\n"
            '  versions: {python: ">=3.10", torch: "==2.8.0"}\n  variables: {A: "1"}\n',
            "manifests/m.yaml": minimal(
                'extends: [parts/p.yaml]\nenvironment:\n  versions: {torch: "==2.9.0"}\n'
            ),
        }
    )
    assert manifest.environment.versions == {"python": ">=3.10", "torch": "==2.9.0"}
    assert manifest.environment.variables == {"A": "1"}


def test_of_several_parts_the_later_wins() -> None:
    part = 'version: 1\nenvironment:\n  variables: {A: "%s"}\n'
    manifest = load_parts(
        {
            "manifests/one.yaml": part % "one",
            "manifests/two.yaml": part % "two",
            "manifests/m.yaml": minimal("extends: [one.yaml, two.yaml]\n"),
        }
    )
    assert manifest.environment.variables == {"A": "two"}


def test_a_component_is_merged_key_by_key_and_its_pin_taken_whole() -> None:
    other = "f" * 40
    manifest = load_parts(
        {
            "manifests/stack.yaml": minimal("    patches: [{series: patches/a/series}]\n"),
            "manifests/m.yaml": "version: 1\nextends: [stack.yaml]\n"
            f"components:\n  a:\n    pin: {other}\n    strip: 2\n",
        }
    )
    (component,) = manifest.components
    assert component.pin == GitPin(CommitId(other))
    assert component.source == GitSource("https://example.com/a.git")
    assert component.strip == 2
    assert len(component.patches) == 1
    assert component.pin_where.file == Path("manifests/m.yaml")
    assert component.patches[0].where.file == Path("manifests/stack.yaml")


def test_a_source_of_another_kind_replaces_the_whole_source() -> None:
    pin = '{version: "1.0", sha256: ' + "ab" * 32 + "}"
    manifest = load_parts(
        {
            "manifests/stack.yaml": minimal(),
            "manifests/m.yaml": "version: 1\nextends: [stack.yaml]\ncomponents:\n"
            f"  a:\n    source: {{index: demo}}\n    pin: {pin}\n",
        }
    )
    assert manifest.components[0].source == IndexSource("demo")


def test_lists_are_replaced() -> None:
    manifest = load_parts(
        {
            "manifests/stack.yaml": minimal("    patches: [{series: patches/a/series}]\n"),
            "manifests/m.yaml": "version: 1\nextends: [stack.yaml]\n"
            "components:\n  a:\n    patches: []\n",
        }
    )
    assert manifest.components[0].patches == ()


def test_components_of_parts_come_first_in_their_order() -> None:
    manifest = load_parts(
        {
            "manifests/stack.yaml": minimal(),
            "manifests/m.yaml": minimal("extends: [stack.yaml]\n").replace("  a:", "  b:", 1),
        }
    )
    assert [each.name for each in manifest.components] == ["a", "b"]


def test_a_description_is_not_inherited() -> None:
    manifest = load_parts(
        {
            "manifests/stack.yaml": minimal("description: of the part\n"),
            "manifests/m.yaml": "version: 1\nextends: [stack.yaml]\n",
        }
    )
    assert manifest.description == ""


def test_a_problem_in_a_part_that_is_covered_is_told_all_the_same() -> None:
    with pytest.raises(BadInputError) as caught:
        load_parts(
            {
                "manifests/stack.yaml": minimal().replace(COMMIT, "main"),
                "manifests/m.yaml": minimal("extends: [stack.yaml]\n"),
            }
        )
    (problem,) = caught.value.problems
    assert problem.where == "manifests/stack.yaml:5"


def test_what_two_files_say_together_is_told_with_both_places() -> None:
    versions = 'environment:\n  versions: {%s: "==2.8.0"}\n'
    with pytest.raises(BadInputError) as caught:
        load_parts(
            {
                "manifests/p.yaml": "version: 1\n" + versions % "torch_npu",
                "manifests/m.yaml": minimal("extends: [p.yaml]\n" + versions % "torch-npu"),
            }
        )
    assert str(caught.value) == (
        "manifests/m.yaml:8: torch-npu is the same package as torch_npu in manifests/p.yaml:3"
    )


def test_a_chain_of_parts_ends() -> None:
    files = {
        f"manifests/p{n}.yaml": f"version: 1\nextends: [p{n + 1}.yaml]\n"
        for n in range(1, MAXIMUM_EXTENDS - 1)
    }
    files[f"manifests/p{MAXIMUM_EXTENDS - 1}.yaml"] = "version: 1\n"
    files["manifests/m.yaml"] = minimal("extends: [p1.yaml]\n")
    assert load_parts(files).name == "m"


def test_parts_that_share_parts_are_read_in_good_time() -> None:
    """Eight levels of two parts each would be 256 readings of the last."""
    files = {"manifests/m.yaml": minimal("extends: [l1.yaml, r1.yaml]\n")}
    for n in range(1, MAXIMUM_EXTENDS - 1):
        both = f"version: 1\nextends: [l{n + 1}.yaml, r{n + 1}.yaml]\n"
        files |= {f"manifests/l{n}.yaml": both, f"manifests/r{n}.yaml": both}
    last = MAXIMUM_EXTENDS - 1
    files |= {f"manifests/{side}{last}.yaml": "version: 1\n" for side in "lr"}
    start = time.process_time()
    load_parts(files)
    assert time.process_time() - start < 1.0


# --- the file itself


def test_a_file_that_is_too_large_is_not_read() -> None:
    with pytest.raises(BadInputError, match="larger than 1024 KiB"):
        load_text(minimal() + "#" * MAXIMUM_BYTES)


@pytest.mark.parametrize("make", ["nothing", "folder"])
def test_what_is_no_file(make: str, tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    if make == "folder":
        path.mkdir()
    with pytest.raises(BadInputError) as caught:
        load_manifest(path)
    assert str(path) in str(caught.value)


def test_a_large_manifest_loads_fast() -> None:
    component = minimal("    patches: [{series: patches/NAME/series}]\n").partition("ts:\n")[2]
    names = [f"c{n}" for n in range(200)]
    blocks = [component.replace("  a:", f"  {n}:").replace("NAME", n) for n in names]
    start = time.process_time()
    manifest = load_text("version: 1\ncomponents:\n" + "".join(blocks))
    assert len(manifest.components) == 200
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize("entry", ["series: patches/a/series", "patch: patches/a/x.patch"])
def test_a_symbolic_link_out_of_the_project_is_refused(entry: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    root = tmp_path / "project"
    (root / "patches").mkdir(parents=True)
    (root / "patches" / "a").symlink_to(elsewhere)
    (root / "m.yaml").write_text(minimal(f"    patches: [{{{entry}}}]\n"))
    with pytest.raises(BadInputError, match="leads out of the project"):
        load_manifest(root / "m.yaml")


def test_a_symbolic_link_inside_the_project_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "patches").symlink_to("real")
    manifest = load_text(minimal("    patches: [{series: patches/series}]\n"))
    assert len(manifest.components[0].patches) == 1


def test_a_part_behind_a_symbolic_link_out_of_the_project_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text("version: 1\n")
    root = tmp_path / "project"
    root.mkdir()
    (root / "part.yaml").symlink_to(outside)
    (root / "m.yaml").write_text(minimal("extends: [part.yaml]\n"))
    with pytest.raises(BadInputError, match="outside of the project"):
        load_manifest(root / "m.yaml")


def test_a_secret_is_never_in_a_message() -> None:
    text = minimal(
        source='{git: "https://user:hunter2@example.com/a b", mirror: "https://t0ken@h/x"}'
    )
    with pytest.raises(BadInputError) as caught:
        load_text(text)
    told = str(caught.value) + "".join(problem.hint for problem in caught.value.problems)
    assert "hunter2" not in told
    assert "t0ken" not in told


def test_a_wild_value_is_shown_on_one_short_line() -> None:
    with pytest.raises(BadInputError) as caught:
        load_text(minimal(pin='"' + "x\\e[31m" * 40 + '"'))
    (problem,) = caught.value.problems
    assert "\x1b" not in str(problem)
    assert len(str(problem)) < 150


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
    with pytest.raises(BadInputError) as caught:
        load_text(text)
    assert time.process_time() - start < 1.5  # 0.5 s on an idle machine
    *first, last = caught.value.problems
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
