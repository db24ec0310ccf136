"""`series: conandata.yml` and `series: source.json`: the list stays in the other tool's file, and
what that tool takes by it still gives the tree that patchkit makes.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from tests.ops.shouting import ONE, TWO, shouted
from tests.support.projects import Project, write_files
from tests.support.repos import Upstream, git_in

pytestmark = pytest.mark.slow

OLD = "patches/old.patch"
CONAN = """\
sources:
  "1.1": {url: "https://example.com/demo-1.1.tar.gz", sha256: "00"}  # kept
patches:
  "1.1":
    # the first
    - patch_file: "patches/0001-one.patch"
      patch_type: "portability"
    - patch_file: "patches/two.patch"
      patch_description: "two"
  "1.0":
    - patch_file: "patches/0001-one.patch"
"""


def integrity(data: bytes) -> str:
    return "sha256-" + b64encode(sha256(data).digest()).decode()


def conan(project: Project) -> list[str]:
    listed = yaml.safe_load(project.read("recipe/conandata.yml"))["patches"]["1.1"]
    return [each["patch_file"] for each in listed]


def bazel(project: Project) -> list[str]:
    listed = json.loads(project.read("recipe/source.json"))["patches"]
    for name, value in listed.items():
        assert integrity((project.root / "recipe/patches" / name).read_bytes()) == value
    return [f"patches/{name}" for name in listed]


TOOLS = {"conandata.yml": conan, "source.json": bazel}


@pytest.fixture(params=TOOLS)
def demo(request: pytest.FixtureRequest, project: Project, upstream: Upstream) -> Project:
    hashes = {"0001-one.patch": integrity(ONE), "two.patch": integrity(TWO)}
    source = {"url": "", "patches": hashes, "patch_strip": 1}
    lists = {"conandata.yml": CONAN, "source.json": json.dumps(source, indent=4) + "\n"}
    patches = {"patches/0001-one.patch": ONE, "patches/two.patch": TWO}
    write_files(project.root / "recipe", {request.param: lists[request.param], **patches})
    target = {"target": "1.1"} if request.param == "conandata.yml" else {}
    entry = {"series": f"recipe/{request.param}", **target}
    project.component("demo", upstream, shouted(), [entry])
    project.run("apply").ok()
    return project


def tool(project: Project) -> str:
    return next(name for name in TOOLS if (project.root / "recipe" / name).exists())


def agrees(project: Project, tmp_path: Path) -> list[str]:
    """What the other tool takes; it gives the tree of the checkout."""
    project.run("apply", "--locked").ok()
    project.run("refresh").ok().shows("unchanged")
    project.run("check").ok()
    own = tmp_path / "own"
    git_in(tmp_path, "clone", "-q", str(project.checkout("demo")), str(own))
    git_in(own, "fetch", "-q", "origin", "refs/patchkit/base")
    git_in(own, "checkout", "-q", "FETCH_HEAD")
    names = TOOLS[tool(project)](project)
    git_in(own, "apply", "--index", *(str(project.root / "recipe" / name) for name in names))
    assert git_in(own, "write-tree") == project.git("rev-parse", "HEAD^{tree}")
    return names


def test_it_is_used_where_it_is(demo: Project, tmp_path: Path) -> None:
    assert agrees(demo, tmp_path) == ["patches/0001-one.patch", "patches/two.patch"]


VERBS = {
    "move": (("move", "two", "--to", "1"), ["two", "0001-one"]),
    "drop": (("drop", "two"), ["0001-one"]),
    "rename": (("edit", "two", "--name", "twenty"), ["0001-one", "twenty"]),
    "reword": (("edit", "two", "--message", "Other words"), ["0001-one", "two"]),
    "leave": (("drop", "1"), ["two"]),
}


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_is_written_there(demo: Project, tmp_path: Path, verb: str) -> None:
    argv, stems = VERBS[verb]
    before = demo.product
    demo.run(*argv).ok()
    assert agrees(demo, tmp_path) == [f"patches/{stem}.patch" for stem in stems]
    if verb == "leave":  # the older version takes the file as well
        assert (demo.root / OLD).with_name("0001-one.patch").exists() is False
        there = (demo.root / "recipe/patches/0001-one.patch").exists()
        assert there == (tool(demo) == "conandata.yml")
    demo.run("undo").ok()
    assert demo.product == before


def test_new_patches_and_edits(demo: Project, tmp_path: Path) -> None:
    checkout = demo.checkout("demo")
    (checkout / "b.py").write_text("new\n")
    demo.run("refresh", "--new", "rework-b").ok()
    text = (checkout / "a.py").read_text()
    (checkout / "a.py").write_text(text.replace("LINE 20\n", "LINE 20!\n"))
    demo.run("refresh").ok()
    assert b"LINE 20!" in (demo.root / "recipe/patches/two.patch").read_bytes()
    names = agrees(demo, tmp_path)
    assert names == ["patches/0001-one.patch", "patches/two.patch", "patches/rework-b.patch"]
    if tool(demo) == "conandata.yml":
        line = '    - patch_file: "patches/rework-b.patch"\n'
        at = CONAN.index('  "1.0":')
        assert demo.read("recipe/conandata.yml") == CONAN[:at] + line + CONAN[at:]


def test_a_patch_of_another_version_is_not_changed(demo: Project, tmp_path: Path) -> None:
    file = demo.checkout("demo") / "a.py"
    file.write_text(file.read_text().replace("LINE 3\n", "LINE 3!\n"))
    if tool(demo) == "source.json":
        demo.run("refresh").ok()
        agrees(demo, tmp_path)
        return
    with demo.untouched():
        demo.run("refresh").ends(1, "0001-one.patch is a patch of 1.0 as well, and would change")


def test_nor_are_its_words(demo: Project) -> None:
    if tool(demo) == "conandata.yml":
        with demo.untouched():
            demo.run("edit", "1", "--message", "Other").ends(4, "a patch of 1.0 as well")
        demo.run("edit", "1", "--name", "own").ok()
        assert conan(demo) == ["patches/own.patch", "patches/two.patch"]
        assert (demo.root / "recipe/patches/0001-one.patch").read_bytes() == ONE


def test_a_hash_of_other_bytes_is_an_error(demo: Project) -> None:
    if tool(demo) == "conandata.yml":
        return
    file = demo.root / "recipe/patches/two.patch"
    file.write_bytes(TWO.replace(b"Why not.", b"Because!"))
    demo.run("check").ends(4, "recipe/source.json:5: two.patch is not what sha256-", "if the patch")


def test_a_bump_writes_there(demo: Project, upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit({**shouted(20), "new.py": "n\n"})
    demo.run("bump", "--to", "main").ok()
    assert agrees(demo, tmp_path) == ["patches/0001-one.patch"]


def test_lines_for_other_targets_stay(project: Project, upstream: Upstream) -> None:
    """A kernel's series.conf: tabs, and guards that say which target takes a patch."""
    rows = "\tone.patch\n+slow\tother.patch\n+npu\ttwo.patch\n- off.patch\n"
    files = {"one.patch": ONE, "two.patch": TWO, "other.patch": b"none", "off.patch": b"none"}
    write_files(project.root / "kernel", {"series.conf": rows, **files})
    entry = {"series": "kernel/series.conf", "target": "npu"}
    project.component("demo", upstream, shouted(), [entry])
    project.run("apply").ok()
    (project.checkout("demo") / "b.py").write_text("new\n")
    project.run("refresh", "--new", "rework-b").ok()
    assert project.read("kernel/series.conf") == f"{rows}+npu\trework-b.patch\n"
    project.run("drop", "two").ok()
    left = rows.replace("+npu\ttwo.patch\n", "")
    assert project.read("kernel/series.conf") == f"{left}+npu\trework-b.patch\n"
    project.run("apply", "--locked").ok()


def test_a_list_is_imported_in_its_order(demo: Project, upstream: Upstream, tmp_path: Path) -> None:
    """Where it stands, as a folder or by its own name."""
    if tool(demo) == "conandata.yml":
        text = demo.read("recipe/conandata.yml")
        demo.write({"recipe/conandata.yml": text.partition('  "1.0":')[0]})
    project = Project(tmp_path / "other")
    project.component("demo", upstream, shouted())
    project.run("import", str(demo.root / "recipe" / tool(demo))).ok()
    listed = "0001-one.patch\ntwo.patch\n"
    assert project.files()["patches/demo/series"].decode().replace(" -p1", "") == listed


def test_files_that_list_nothing(project: Project, upstream: Upstream) -> None:
    write_files(
        project.root / "recipe", {"conandata.yml": CONAN, "list": "<ul>\n<li>\n<li>\n</ul>\n"}
    )
    entry: dict[str, object] = {"series": "recipe/conandata.yml"}
    project.component("demo", upstream, shouted(), [entry])
    several = "recipe/conandata.yml:4: patches of several versions"
    project.run("check").ends(4, several, 'beside series: target: "1.1" (there are 1.1, 1.0)')
    project.component("demo", upstream, shouted(), [{"series": "recipe/list"}])
    project.run("check").ends(4, "recipe/list:1: lists no patches", "known are quilt's series")
    write_files(project.root / "recipe", {"demo_1.1.bb": 'require demo.inc\nSRC_URI = ""\n'})
    project.component("demo", upstream, shouted(), [{"series": "recipe/demo_1.1.bb"}])
    project.run("check").ends(4, "recipe/demo_1.1.bb:1: left out: what demo.inc has")
    entry = {"series": "recipe/list", "dialect": "bazel"}
    project.component("demo", upstream, shouted(), [entry])
    project.run("check").ends(4, "recipe/list:")


#: File -> its text, and what applies the patches that it lists to a tree.
BUILDERS = {
    "demo_1.bb": 'SRC_URI = "https://e.com/demo.tgz \\\n    file://0001-one.patch \\\n'
    '    file://init \\\n    file://two.patch \\\n"\n',
    "demo.spec": "Name: demo\nPatch1: 0001-one.patch\n# why\nPatch4: two.patch\n"
    "%prep\n%setup -q\n%patch1 -p1\n%patch4 -p1\n",
    "portfile.cmake": "vcpkg_from_github(\n    REPO a/demo\n    PATCHES\n        0001-one.patch\n"
    "        two.patch\n)\n",
    "meta.yaml": "source:\n  git_url: x\n  patches:\n    - 0001-one.patch\n    - two.patch\n",
    "patch.cfg": "patches = [\n  {\n    # why\n    'name': '0001-one',\n  },\n  {\n"
    "    'name': 'two',\n  },\n]\n",
}


def listed_there(text: str) -> list[str]:
    """The patches that a builder takes of such a file, in its order."""
    if "%prep" in text:
        names = dict(re.findall(r"(?m)^Patch(\d+): (\S+)", text))
        return [names[number] for number in re.findall(r"(?m)^%patch(\d+) -p1", text)]
    found = re.findall(
        r"file://(\S+\.patch)|^ +(?:- )?(\S+\.patch)$|'name': '(\S+)'", text, re.MULTILINE
    )
    return [name if name.endswith(".patch") else f"{name}.patch" for name in map("".join, found)]


@pytest.mark.parametrize("file", BUILDERS)
def test_the_lists_of_builders_are_written_where_they_are(
    project: Project, upstream: Upstream, tmp_path: Path, file: str
) -> None:
    folder = "recipe/patches" if file == "patch.cfg" else "recipe/demo"
    write_files(project.root / "recipe", {file: BUILDERS[file]})
    write_files(project.root / folder, {"0001-one.patch": ONE, "two.patch": TWO})
    entry = {"series": f"recipe/{file}"} | ({} if "patches" in folder else {"within": folder})
    project.component("demo", upstream, shouted(), [entry])
    project.run("apply").ok()
    before = project.product
    (project.checkout("demo") / "b.py").write_text("new\n")
    project.run("refresh", "--new", "rework-b").ok()
    project.run("move", "two", "--to", "1").ok()
    project.run("edit", "0001-one", "--name", "one").ok()
    text = project.read(f"recipe/{file}")
    assert listed_there(text) == ["two.patch", "one.patch", "rework-b.patch"]
    project.run("apply", "--locked").ok()
    own = tmp_path / "own"
    git_in(tmp_path, "clone", "-q", str(project.checkout("demo")), str(own))
    git_in(own, "fetch", "-q", "origin", "refs/patchkit/base")
    git_in(own, "checkout", "-q", "FETCH_HEAD")
    patches = (str(project.root / folder / name) for name in listed_there(text))
    git_in(own, "apply", "--index", *patches)
    assert git_in(own, "write-tree") == project.git("rev-parse", "HEAD^{tree}")
    project.run("drop", "two").ok()
    assert listed_there(project.read(f"recipe/{file}")) == ["one.patch", "rework-b.patch"]
    for _ in range(4):
        project.run("undo").ok()
    assert project.product == before
