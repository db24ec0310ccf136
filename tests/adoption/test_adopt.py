"""`patchkit init --here`: carriers of each kind, adopted without a file moved.

The oracle is the carrier's own way: git applies its patches in its order to its pin, and the tree
is that of the stack.
"""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from patchkit.adoption.carrier import Carrier
from patchkit.adoption.patch_sets import patch_sets
from patchkit.adoption.proposal import propose
from tests.support.archives import digest, make_tar
from tests.support.commands import run_process
from tests.support.projects import Project
from tests.support.repos import Upstream, git_in, make_patch
from tests.support.servers import Reply, http_server

BASE = {"src/a.py": "one\ntwo\nthree\n", "src/b.py": "1\n2\n3\n"}
FIRST = make_patch(BASE, {"src/a.py": "one\nTWO\nthree\n"}, subject="Shout")
SECOND = make_patch(
    {"src/a.py": "one\nTWO\nthree\n"}, {"src/a.py": "one\nTWO!\nthree\n"}, subject="Louder"
)
OTHER = make_patch(BASE, {"src/b.py": "1\n2\n3\n4\n"}, subject="Count on")
URL = "https://forge.invalid/team/engine.git"


@pytest.fixture
def engine(upstream: Upstream) -> Upstream:
    """An upstream with a tag, which URL leads to."""
    upstream.tag("v1.2.0", upstream.commit(BASE))
    upstream.commit({"src/a.py": "another\n"})
    (Path.home() / ".gitconfig").write_text(f'[url "{upstream.url}"]\n\tinsteadOf = {URL}\n')
    return upstream


def _carrier(project: Project, files: Mapping[str, str | bytes]) -> None:
    git_in(project.root, "init", "-q")
    project.write(files)
    git_in(project.root, "add", "-A")


CARRIERS: dict[str, tuple[dict[str, str | bytes], dict[str, object], list[dict[str, str]]]] = {
    "a numbered folder, the pin in a file of one line": (
        {
            "projects/engine/GIT_TAG": "v1.2.0\n",
            "projects/engine/Makefile": f"# {URL}\n",
            "projects/engine/patches/0001-shout.patch": FIRST,
            "projects/engine/patches/0002-louder.patch": SECOND,
            "projects/engine/patches/0010-count.patch": OTHER,
        },
        {"file": "projects/engine/GIT_TAG"},
        [{"folder": "projects/engine/patches", "order": "number"}],
    ),
    "a folder of patches with the path of the one that has the pin": (
        {
            "patches/third-party/engine/0001-shout.patch": FIRST,
            "patches/third-party/engine/0002-louder.patch": SECOND,
            "third-party/engine/CMakeLists.txt": f"# {URL}\nset(ENGINE_TAG v1.2.0)\n",
            "third-party/README.md": "What we build.\n",
        },
        {"file": "third-party/engine/CMakeLists.txt"},
        [{"folder": "patches/third-party/engine", "order": "number"}],
    ),
    "quilt's series, the pin in a Dockerfile": (
        {
            "docker/Dockerfile": f"ARG ENGINE_TAG=v1.2.0\nRUN git clone {URL} -b $ENGINE_TAG\n",
            "docker/engine/series": "# ours\nz.patch\nlouder.patch -p1\ncount.patch\n",
            "docker/engine/z.patch": FIRST,
            "docker/engine/louder.patch": SECOND,
            "docker/engine/count.patch": OTHER,
        },
        {"file": "docker/Dockerfile", "arg": "ENGINE_TAG"},
        [{"series": "docker/engine/series"}],
    ),
    "Electron's list and DEPS": (
        {
            "DEPS": "vars = {\n  'engine_version':\n    'v1.2.0',\n  'git': 'https://forge.invalid/team',\n}\n"
            "deps = {\n  'src/third_party/engine': {\n    'url': (Var(\"git\")) + '/engine.git@' +"
            " Var('engine_version'),\n  },\n}\n",
            "patches/engine/.patches": "z.patch\nlouder.patch\ncount.patch\n",
            "patches/engine/z.patch": FIRST,
            "patches/engine/louder.patch": SECOND,
            "patches/engine/count.patch": OTHER,
        },
        {"file": "DEPS", "deps": "engine_version"},
        [{"series": "patches/engine/.patches"}],
    ),
    "one patch a file in a mirror of the tree, the pin in a shell script": (
        {
            "install.sh": f"ENGINE_VERSION=v1.2.0\ngit clone {URL}\n",
            "backends/engine/src/a.py.patch": FIRST,
            "backends/engine/src/b.py.patch": OTHER,
            "backends/engine/deep/er.py.patch": make_patch({}, {"deep/er.py": "new\n"}),
        },
        {"file": "install.sh", "variable": "ENGINE_VERSION"},
        [{"folder": "backends/engine", "order": "path"}],
    ),
    "vcpkg's portfile, the version in vcpkg.json without a v": (
        {
            "ports/engine/portfile.cmake": "vcpkg_from_gitlab(\n    GITLAB_URL https://forge.invalid\n"
            "    OUT_SOURCE_PATH SOURCE_PATH\n    REPO team/engine.git # (it moved)\n"
            '    REF "v${VERSION}"\n    PATCHES\n        z.patch\n        louder.patch\n)\n'
            "vcpkg_from_github(\n    OUT_SOURCE_PATH DATA\n    REPO team/data\n    REF v2.1\n)\n",
            "ports/engine/vcpkg.json": '{\n  "homepage": "https://github.com/old/engine",\n'
            '  "version-semver": "1.2.0"\n}\n',
            "ports/engine/z.patch": FIRST,
            "ports/engine/louder.patch": SECOND,
        },
        {"file": "ports/engine/vcpkg.json", "variable": "version-semver", "tag": "v*"},
        [{"series": "ports/engine/portfile.cmake"}],
    ),
    "vcpkg's portfile, the commit in it": (
        {
            "ports/engine/portfile.cmake": f"vcpkg_from_git(\n    URL {URL}\n"
            "    OUT_SOURCE_PATH SOURCE_PATH\n    REF v1.2.0\n    PATCHES z.patch\n)\n",
            "ports/engine/vcpkg.json": '{\n  "version": "7.0.0"\n}\n',
            "ports/engine/z.patch": FIRST,
        },
        {"file": "ports/engine/portfile.cmake", "cmake": "SOURCE_PATH"},
        [{"series": "ports/engine/portfile.cmake"}],
    ),
    "west's patches of a module, the revision in west.yml": (
        {
            "west.yml": "manifest:\n  defaults:\n    remote: ours\n  remotes:\n    - name: ours\n"
            "      url-base: https://forge.invalid/team\n  projects:\n    - name: other\n"
            "      revision: v2.0\n    - name: engine # it\n      revision: v1.2.0\n"
            "      repo-path: engine.git\n  self:\n    path: app\n",
            "zephyr/patches.yml": "patches:\n"
            + "".join(
                f"  - path: {name}.patch\n    sha256sum: {sha256(data).hexdigest()}\n"
                f"    module: modules/engine\n    author: A\n"
                for name, data in (("z", FIRST), ("louder", SECOND))
            )
            + "  - path: other.patch\n    sha256sum: 0\n    module: gone\n",
            "zephyr/patches/z.patch": FIRST,
            "zephyr/patches/louder.patch": SECOND,
        },
        {"file": "west.yml"},
        [{"series": "zephyr/patches.yml", "target": "modules/engine"}],
    ),
    "a recipe, SRCREV in it": (
        {
            "recipes/engine/engine_git.bb": f'SRC_URI = "{URL} \\\n    file://z.patch \\\n'
            '    file://louder.patch"\nSRCREV = "v1.2.0"\n'
            'SRC_URI:append:class-native = " file://native.patch"\n',
            "recipes/engine/files/z.patch": FIRST,
            "recipes/engine/files/louder.patch": SECOND,
            "recipes/engine/files/native.patch": OTHER,
        },
        {"file": "recipes/engine/engine_git.bb", "variable": "SRCREV"},
        [{"series": "recipes/engine/engine_git.bb", "within": "recipes/engine/files"}],
    ),
    "patches that a script names in its order, a README that clones and checks out": (
        {
            "npu/README.md": f"git clone {URL} && cd engine\ngit checkout v1.2.0\n"
            "git apply engine-z.patch\ngit apply engine-a.patch\n",
            "npu/engine-z.patch": FIRST,
            "npu/engine-a.patch": SECOND,
        },
        {"file": "npu/README.md"},
        [{"patch": "npu/engine-z.patch"}, {"patch": "npu/engine-a.patch"}],
    ),
}


@pytest.mark.parametrize("kind", CARRIERS)
def test_a_carrier_is_adopted_where_it_lies(project: Project, engine: Upstream, kind: str) -> None:
    files, pin, patches = CARRIERS[kind]
    _carrier(project, files)
    before = project.files()
    adopted = project.run("init", "ours", "--here", "--json").ok().json
    assert [(each["applied"], each["patches"]) for each in adopted["components"]] == [
        (len(files) - _OTHERS[kind],) * 2
    ]
    assert {name: data for name, data in project.files().items() if name in before} == before
    component = yaml.safe_load(project.read("manifests/ours.yaml"))["components"]["engine"]
    assert component["source"] == {"git": URL}
    assert component["pin"].items() >= pin.items()
    assert component["patches"] == patches
    project.run("fetch", "-m", "ours").ok()
    project.run("apply", "-m", "ours").ok()
    assert git_in(project.checkout("engine"), "rev-parse", "HEAD^{tree}") == _by_git(
        project, engine, patches
    )


#: Files of a carrier that are no patches.
_OTHERS = dict(zip(CARRIERS, (2, 2, 2, 2, 1, 2, 2, 2, 2, 1), strict=True))


def _by_git(project: Project, engine: Upstream, patches: list[dict[str, str]]) -> bytes:
    """The tree that the carrier's own way leads to."""
    tree = project.root.parent / "by-git"
    engine.git("worktree", "add", "-q", "--detach", str(tree), "v1.2.0")
    for entry in patches:
        for path in _in_order(project.root, entry):
            git_in(tree, "apply", "--index", str(path))
    return git_in(tree, "write-tree")


def _in_order(root: Path, entry: Mapping[str, str]) -> list[Path]:
    if "patch" in entry:
        return [root / entry["patch"]]
    if "folder" in entry:
        return sorted((root / entry["folder"]).rglob("*.patch"))
    listed = root / entry["series"]
    if listed.name == "patches.yml":
        rows = yaml.safe_load(listed.read_text())["patches"]
        paths = [row["path"] for row in rows if row["module"] == entry["target"]]
        return [listed.parent / "patches" / path for path in paths]
    words = [line.replace("file://", "").split() for line in listed.read_text().splitlines()]
    names = [line[-1 if "PATCHES" in line else 0].strip('"') for line in words if line]
    folder = root / entry.get("within", listed.parent)
    return [folder / name for name in names if name.endswith(".patch")]


@pytest.mark.parametrize(
    ("submodule", "folder", "other"),
    [
        ("src/engine/engine", "src/engine/patch", "Makefile"),
        ("upstream", "patches", "Makefile"),
        ("lib/upstream", "patches", "docs/build/Makefile"),
    ],
    ids=["named", "the only one around", "the only one"],
)
def test_a_submodule_is_a_pin(
    project: Project, engine: Upstream, submodule: str, folder: str, other: str
) -> None:
    _carrier(
        project,
        {
            ".gitmodules": f'[submodule "it"]\n\tpath = {submodule}\n\turl = {URL}\n',
            other: "VERSION := 1.0.0\nCI := https://forge.invalid/team/ci.git\n",
            f"{folder}/0001-shout.patch": FIRST,
        },
    )
    commit = engine.at("v1.2.0")
    git_in(project.root, "update-index", "--add", "--cacheinfo", f"160000,{commit},{submodule}")
    adopted = project.run("init", "--here", "ours", "--json").ok().json
    assert adopted["components"][0]["commit"] == commit
    component = yaml.safe_load(project.read("manifests/ours.yaml"))["components"]["engine"]
    assert component["pin"] == {"submodule": submodule}


def test_the_upstream_to_which_all_patches_apply_is_taken(
    project: Project, engine: Upstream
) -> None:
    """Two files name a pin, one of which went on: what applies says which is meant."""
    _carrier(
        project,
        {
            "docker/Dockerfile": f"ARG ENGINE_COMMIT={engine.at('main')}\n# {URL}\n",
            "docker/Dockerfile.old": f"ARG ENGINE_COMMIT={engine.at('v1.2.0')}\n# {URL}\n",
            "docker/engine/0001-shout.patch": FIRST,
        },
    )
    [component] = project.run("init", "--here", "ours", "--json").ok().json["components"]
    assert component["where"] == "docker/Dockerfile.old:1"


def test_what_is_not_known_is_said(project: Project, engine: Upstream) -> None:
    _carrier(
        project,
        {
            "docker/Dockerfile": f"ARG ENGINE_COMMIT={engine.at('main')}\nRUN git clone {URL}\n",
            "docker/engine/0001-shout.patch": FIRST,
            "elsewhere/lost.patch": OTHER,
        },
    )
    ran = project.run("init", "--here", "ours").ends(1, "elsewhere: no file near it says")
    assert "0 of 1 patches apply" in ran.out
    assert "does not apply at the pin" in ran.err
    project.run("check", "-m", "ours").ends(1)


def test_on_a_terminal_it_asks_which_upstream_is_meant(project: Project, engine: Upstream) -> None:
    nowhere = make_patch({"gone.py": "1\n"}, {"gone.py": "2\n"}, subject="Of another version")
    _carrier(
        project,
        {
            "docker/Dockerfile": f"ARG ENGINE_COMMIT={engine.at('main')}\n# {URL}\n",
            "docker/Dockerfile.old": f"ARG ENGINE_COMMIT={engine.at('v1.2.0')}\n# {URL}\n",
            "docker/engine/0001-shout.patch": FIRST,
            "docker/engine/0002-nowhere.patch": nowhere,
        },
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "patchkit", "init", "ours", "--here"],
        cwd=project.root,
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "dumb"},
    ) as process:
        os.write(ours, b"2\n")
        out, _ = process.communicate(timeout=60)
    os.close(theirs)
    asked = os.read(ours, 4096).decode()
    os.close(ours)
    assert "Which of these are the patches in docker/engine for?" in asked
    [second] = [line for line in asked.splitlines() if line.startswith("2  ")]
    chosen = second.rpartition(" at ")[2].rpartition(":")[0]
    component = yaml.safe_load(project.read("manifests/ours.yaml"))["components"]["engine"]
    assert component["pin"]["file"] == chosen
    assert b"of 2 patches apply" in out
    assert process.returncode == 1


def test_nothing_is_written_for_a_dry_run_or_twice(project: Project, engine: Upstream) -> None:
    files, _, _ = CARRIERS["quilt's series, the pin in a Dockerfile"]
    _carrier(project, files)
    with project.untouched():
        project.run("init", "ours", "--here", "--dry-run").ok()
    project.run("init", "ours", "--here").ok()
    with project.untouched():
        project.run("init", "ours", "--here").ends(2, "manifests/ours.yaml is there already")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([".."], ".. is not below this folder"),
        (["ours", "--git", URL], "--here finds the upstreams"),
        (["a b"], "cannot name a manifest"),
    ],
)
def test_what_cannot_be_adopted(project: Project, argv: list[str], said: str) -> None:
    project.write({"mine/a.patch": FIRST})
    with project.untouched():
        project.run("init", *argv, "--here").ends(2, said)


def test_a_manifest_is_called_after_its_folder(project: Project, engine: Upstream) -> None:
    files, _, _ = CARRIERS["a numbered folder, the pin in a file of one line"]
    _carrier(
        project, {path.replace("engine/", "Our Engine/"): data for path, data in files.items()}
    )
    project.run("init", "projects/Our Engine/", "--here").ok().shows("manifests/our-engine.yaml")


def test_a_folder_without_patches(project: Project) -> None:
    with project.untouched():
        project.run("init", "--here").ends(2, "no patch is here")


def test_of_folders_for_versions_the_newest_is_taken(project: Project, engine: Upstream) -> None:
    _carrier(
        project,
        {
            "docker/Dockerfile": f"ARG ENGINE_TAG=v1.2.0\nRUN git clone {URL}\n",
            "docker/engine/v1.1.9/0001-shout.patch": OTHER,
            "docker/engine/v1.2.0/0001-shout.patch": FIRST,
        },
    )
    adopted = project.run("init", "--here", "ours", "--json").ok().json
    assert [each["folder"] for each in adopted["components"][0]["sets"]] == ["docker/engine/v1.2.0"]
    assert [each["folder"] for each in adopted["older"]] == ["docker/engine/v1.1.9"]


@pytest.mark.slow
def test_an_upstream_is_asked_once_for_all_its_tags(
    project: Project, engine: Upstream, tmp_path: Path
) -> None:
    engine.tag("v1.3.0", engine.at("v1.2.0"))
    _carrier(
        project,
        {
            f"{name}/engine/{file}": data
            for name, tag in (("a", "v1.2.0"), ("b", "v1.3.0"), ("c", "v1.2.0"))
            for file, data in (
                ("GIT_TAG", f"{tag}\n"),
                ("Makefile", f"# {URL}\n"),
                ("patches/0001-shout.patch", FIRST),
            )
        },
    )
    log, real = tmp_path / "asked", shutil.which("git")
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    found = {**os.environ, "PATH": f"{wrapper.parent}:{os.environ['PATH']}"}
    run_process("init", "ours", "--here", cwd=project.root, environment=found).ok()
    assert len(yaml.safe_load(project.read("manifests/ours.yaml"))["components"]) == 3
    assert log.read_text().count("ls-remote") == 1


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("https://forge.invalid/team/carrier.git", "../engine.git"),
        ("https://forge.invalid/team/carriers/ours/", "./../../engine.git"),
        ("https://forge.invalid/team", "./engine.git"),
    ],
)
def test_a_relative_submodule_starts_from_the_carriers_remote(
    project: Project, engine: Upstream, remote: str, url: str
) -> None:
    _carrier(
        project,
        {
            ".gitmodules": f'[submodule "engine"]\n\tpath = engine\n\turl = {url}\n',
            "patches/0001-shout.patch": FIRST,
        },
    )
    commit = engine.at("v1.2.0")
    git_in(project.root, "update-index", "--add", "--cacheinfo", f"160000,{commit},engine")
    git_in(project.root, "remote", "add", "origin", remote)
    git_in(project.root, "submodule", "init")
    asked = git_in(project.root, "config", "submodule.engine.url").decode().strip()
    [component] = project.run("init", "ours", "--here", "--json").ok().json["components"]
    assert component["url"] == asked == URL


def test_what_a_manifest_has_is_not_proposed_again(project: Project, engine: Upstream) -> None:
    folder, _, _ = CARRIERS["a numbered folder, the pin in a file of one line"]
    single, _, _ = CARRIERS[
        "patches that a script names in its order, a README that clones and checks out"
    ]
    _carrier(project, {**folder, **single})
    first = project.run("init", "ours", "--here", "--json").ok().json
    assert len(first["components"]) == 2
    with project.untouched():
        project.run("init", "more", "--here").ends(2, "no patch is here that no manifest has")
    project.write(
        {"late/GIT_TAG": "v1.2.0\n", "late/Makefile": f"# {URL}\n", "late/0001-count.patch": OTHER}
    )
    git_in(project.root, "add", "-A")
    [late] = project.run("init", "more", "--here", "--json").ok().json["components"]
    assert [patches["folder"] for patches in late["sets"]] == ["late"]


def test_each_version_of_a_recipe_goes_to_its_own_archive(project: Project) -> None:
    rows = {"1.2.0": "a" * 64, "1.10.0": "b" * 64}
    sources = "".join(
        f'  "{version}":\n    url: "https://e.com/engine-{version}.tar.gz"\n    sha256: {digest}\n'
        for version, digest in rows.items()
    )
    listed = "".join(f'  "{version}":\n    - patch_file: "patches/a.patch"\n' for version in rows)
    data = f"sources:\n{sources}patches:\n{listed}"
    _carrier(project, {"all/conandata.yml": data, "all/patches/a.patch": FIRST})
    carrier = Carrier(project.root)
    found = propose(carrier, patch_sets(carrier))
    assert {
        (each.upstream.url, each.upstream.value): [dict(patches.entry) for patches in each.sets]
        for each in found.adoptions
    } == {
        (f"https://e.com/engine-{version}.tar.gz", digest): [
            {"series": "all/conandata.yml", "target": version}
        ]
        for version, digest in rows.items()
    }


def test_a_repository_is_one_by_either_of_its_urls(project: Project) -> None:
    """A page links to it without `.git` and clones it with that, as the Dockerfile above does."""
    url = "https://git.forge.invalid/team/engine"
    page = f"[engine]({url})\n\ngit clone {url}.git && cd engine\n"
    files: dict[str, str | bytes] = {
        "docker/Dockerfile": f"ARG ENGINE_TAG=v1.1.0\nRUN git clone {url}.git -b $ENGINE_TAG\n"
        "RUN git clone https://git.forge.invalid/team/gear.git\n",
        "docker/npu/README.md": f"{page}git checkout v1.2.0\n",
        "docker/npu/engine.patch": FIRST,
        "docker/npu/gear.patch": OTHER,
    }
    _carrier(project, files)
    carrier = Carrier(project.root)
    first, *_ = propose(carrier, patch_sets(carrier)).adoptions
    assert first.sets[0].patches == ("docker/npu/engine.patch",)
    assert (first.upstream.where, first.upstream.value) == ("docker/npu/README.md:4", "v1.2.0")


def test_versions_of_a_recipe_are_pins_of_one_component(project: Project) -> None:
    with http_server() as server:
        sources, listed = "sources:\n", "patches:\n"
        for version in ("1.10.0", "1.2.0"):
            name = f"engine-{version}"
            archive = make_tar({f"{name}/{path}": text for path, text in BASE.items()})
            server.replies[f"/{name}.tar.gz"] = Reply(archive)
            sources += f'  "{version}":\n    url: "{server.url}/{name}.tar.gz"\n'
            sources += f"    sha256: {digest(archive)}\n"
            listed += f'  "{version}":\n    - patch_file: "patches/a.patch"\n'
        data = sources + listed + '    - patch_file: "patches/b.patch"\n'
        patches: dict[str, str | bytes] = {
            "all/patches/a.patch": FIRST,
            "all/patches/b.patch": OTHER,
        }
        _carrier(project, {"all/conandata.yml": data, **patches})
        rows = project.run("init", "ours", "--here", "--json").ok().json["components"]
    assert [(row["name"], row["applied"]) for row in rows] == [
        ("engine@1.10.0", 1),
        ("engine@1.2.0", 2),
    ]
    [(name, engine)] = yaml.safe_load(project.read("manifests/ours.yaml"))["components"].items()
    assert (name, [*engine], [*engine["pins"]]) == ("engine", ["pins"], ["1.10.0", "1.2.0"])
    [matrix] = project.run("check", "--json").ok().json["versions"]
    assert matrix["families"] == {
        "a.patch": ["applies", "applies"],
        "b.patch": ["missing", "applies"],
    }
    project.run("apply", "engine@1.2.0").ok()
    project.run("drop", "-c", "engine@1.2.0", "b").ok()
    assert project.read("all/conandata.yml") == data.replace(
        '    - patch_file: "patches/b.patch"\n', ""
    )
    with project.untouched():
        project.run("init", "more", "--here").ends(2, "no patch is here that no manifest has")


def test_a_package_of_a_collection_is_adopted_from_its_own_folder(
    tmp_path: Path, engine: Upstream
) -> None:
    """Its archive is a release of the repository, so that no other upstream is meant."""
    owner = "https://git.forge.invalid/team"
    (Path.home() / ".gitconfig").write_text(f'[url "{engine.url}"]\n\tinsteadOf = {owner}/engine\n')
    project = Project(tmp_path / "collection/audio/engine")
    archive = f"{owner}/engine/releases/download/v${{PKG_VERSION}}/engine-${{PKG_VERSION}}.tar.gz"
    project.write(
        {
            "package.mk": 'PKG_NAME="engine"\nPKG_VERSION="1.2.0"\n'
            f'PKG_SHA256="{"a" * 64}"\nPKG_SITE="https://engine.invalid"\nPKG_URL="{archive}"\n',
            "patches/0001-shout.patch": FIRST,
        }
    )
    git_in(tmp_path / "collection", "init", "-q")
    git_in(tmp_path / "collection", "add", "-A")
    [component] = project.run("init", "--here", "ours", "--json").ok().json["components"]
    assert (component["name"], component["url"]) == ("engine", f"{owner}/engine")
    assert (component["where"], component["applied"]) == ("package.mk:2", 1)


def test_an_archive_is_called_as_it_is_without_its_version(project: Project) -> None:
    names = {"engine-1.2.0": "engine", "engine2-v3": "engine2", "libfoo_0.1rc1": "libfoo"}
    for number, archive in enumerate(names):
        line = f"URL=https://e.com/{archive}.tar.gz\nSHA={number:064}\n"
        project.write({f"{number}/a.mk": line, f"{number}/a.patch": FIRST})
    carrier = Carrier(project.root)
    found = propose(carrier, patch_sets(carrier)).adoptions
    assert [adoption.upstream.name for adoption in found] == [*names.values()]


def test_a_buildroot_package_is_put_together(project: Project) -> None:
    project.write(
        {
            "package/engine-x/engine-x.mk": "ENGINE_X_VERSION = 1.2.0\n"
            "ENGINE_X_SITE = https://e.com/$(ENGINE_X_VERSION)\n",
            "package/engine-x/engine-x.hash": f"sha256  {'a' * 64}  engine-x-1.2.0.tar.gz\n",
            "package/engine-x/0001-shout.patch": FIRST,
        }
    )
    carrier = Carrier(project.root)
    [adoption] = propose(carrier, patch_sets(carrier)).adoptions
    assert adoption.upstream.url == "https://e.com/1.2.0/engine-x-1.2.0.tar.gz"
    assert adoption.upstream.value == "a" * 64
