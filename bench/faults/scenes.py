"""Every command that changes something, in the middle of real work."""

from __future__ import annotations

import json
from hashlib import sha256

import yaml

from bench.faults.project_scenes import PROJECT_SCENES
from bench.faults.sandbox import Sandbox, Scene
from patchkit.model.objects import CommitId
from tests.extensions.recipes.kitchen import DROP, recipe_text
from tests.support.archives import digest, make_tar
from tests.support.projects import Project, write_files
from tests.support.repos import Content, Files, Symlink, Upstream, executable, git_in, make_patch
from tests.support.stacked import Stacked, lines, small_patches

_OLD: Files = {
    "same.py": "same\n",
    "edit.py": lines(),
    "gone/deep/x.py": "gone\n",
    "file": "was a file\n",
    "folder/y.py": "was a folder\n",
    "mode.sh": "mode\n",
    "link": Symlink("edit.py"),
}
_NEW: Files = {
    "edit.py": lines({3: "three\n"}),
    "gone/deep/x.py": None,
    "added/deep/z.py": "added\n",
    "file": None,
    "file/inside.py": "now a folder\n",
    "folder/y.py": None,
    "folder": "now a file\n",
    "mode.sh": executable("mode\n"),
    "link": Symlink("same.py"),
}
_PATCH: Files = {"edit.py": lines({20: "twenty\n"}), "patched/new.py": "patched\n"}
_CODE = "import os\n\n\n@fuser\ndef f(x):\n    return x\n\n\n@fuser\ndef g(x):\n    return x\n"
_NOTES = {"notes.txt": b"my notes\n"}


def _moving(box: Sandbox) -> tuple[Project, Upstream, str]:
    """A checkout at an old base with one patch, whose manifest has moved on."""
    upstream, project = box.upstream("moving"), box.project
    if upstream.resolve("refs/heads/old") is None:
        old = upstream.commit(_OLD, "old", branch="old")
        upstream.commit(_NEW, "new", branch="new", parents=(old,))
    old = CommitId(str(upstream.resolve("refs/heads/old")))
    new = str(upstream.resolve("refs/heads/new"))
    patches = {"one.patch": make_patch(_OLD, _PATCH, subject="Patch one")}
    project.component("demo", upstream, old, patches)
    project.run("apply").ok()
    project.component("demo", upstream, new, patches)
    (project.checkout("demo") / "notes.txt").write_bytes(_NOTES["notes.txt"])
    project.run("fetch").ok()
    return project, upstream, new


def _over_edits(box: Sandbox) -> None:
    project, _, _ = _moving(box)
    checkout = project.checkout("demo")
    (checkout / "edit.py").write_bytes(_FORCED["edit.py"])
    (checkout / "added").write_bytes(_FORCED["added"])


_FORCED = {"edit.py": b"edited\n", "added": b"in the way\n", **_NOTES}


def _cold(box: Sandbox) -> None:
    """Nothing cached yet: two git upstreams, an archive, and a published patch."""
    project, one = box.project, box.upstream("one")
    published = box.upstream("published")
    patch = make_patch({"a.txt": lines()}, {"a.txt": lines({5: "five\n"})}, subject="Published")
    if one.resolve("refs/heads/main") is None:
        one.commit({"a.txt": lines(), "link": Symlink("a.txt")})
        published.commit({"npu/one.patch": patch})
        (box.outside / "demo.tar.gz").write_bytes(_archive())
    entry = {"git": published.url, "commit": str(published.resolve("refs/heads/main"))}
    entry |= {"path": "npu/one.patch", "sha256": sha256(patch).hexdigest()}
    project.component("demo", one, str(one.resolve("refs/heads/main")), [entry])
    source = {"archive": f"file://{box.outside}/demo.tar.gz"}
    project.component("packed", one, {"sha256": digest(_archive())}, source=source)


def _archive() -> bytes:
    return make_tar({"demo-1/a.txt": lines(), "demo-1/setup.py": "setup()\n"})


def _edited(box: Sandbox) -> None:
    """Commits dropped and added, and edits on top: everything that a refresh can have to do."""
    stack = _stacked(box)
    one, _, three = stack.git("rev-list", "--reverse", "refs/patchkit/base..HEAD").split()
    stack.git("reset", "-q", "--hard", "refs/patchkit/base")
    stack.git("cherry-pick", three, one)
    stack.edit("c.txt", "line 3\n", "three\n")
    stack.git("commit", "-qam", "Spell 3")
    stack.edit("a.txt", "five\n", "5\n")
    stack.edit("b.txt", "ten\n", "10\n")
    (stack.checkout / "notes.txt").write_bytes(_NOTES["notes.txt"])


def _stacked(box: Sandbox) -> Stacked:
    return Stacked.of(box.project, box.upstream("stacked"), small_patches())


def _pin_moved(box: Sandbox) -> None:
    """The new base has the first patch, and moved the lines of the second."""
    stack = _stacked(box)
    upstream = box.upstream("stacked")
    moved: dict[str, Content] = {
        "a.txt": "".join(f"top {n}\n" for n in range(9)) + lines({5: "five\n", 6: "six\n"}),
        "d.txt": "new upstream\n",
    }
    pin = upstream.commit(moved, "moves on")
    stack.project.component("demo", upstream, pin, small_patches())
    stack.run("fetch").ok()
    (stack.checkout / "notes.txt").write_bytes(_NOTES["notes.txt"])


def _to_bump(box: Sandbox) -> None:
    """A branch that has moved the lines of the first patch."""
    upstream = box.upstream("bumped")
    if upstream.resolve("refs/heads/main") is None:
        upstream.commit({"a.txt": lines(), "b.txt": lines(), "c.txt": lines()}, branch="old")
        old = CommitId(str(upstream.resolve("refs/heads/old")))
        upstream.commit({"a.txt": "a new first line\n" + lines()}, parents=(old,))
    old = CommitId(str(upstream.resolve("refs/heads/old")))
    box.project.component("demo", upstream, old, small_patches(), track="main")
    box.project.run("apply").ok()
    (box.project.checkout("demo") / "notes.txt").write_bytes(_NOTES["notes.txt"])


def _packed(box: Sandbox) -> None:
    """A component of an archive, and another archive that moves its patch."""
    base = {"a.txt": lines(), "b.txt": lines(), "c.txt": lines()}
    for name, text in (("thing-1.0", lines()), ("thing-1.1", "a new first line\n" + lines())):
        data = make_tar({f"{name}/{path}": each for path, each in {**base, "a.txt": text}.items()})
        (box.outside / f"{name}.tar.gz").write_bytes(data)
        if name == "thing-1.0":
            pin = {"sha256": digest(data)}
    source = {"archive": f"file://{box.outside}/thing-1.0.tar.gz"}
    patches = {"one.patch": small_patches()["one.patch"]}
    box.project.component("demo", box.upstream("any"), pin, patches, source=source)
    box.project.run("apply").ok()
    (box.project.checkout("demo") / "notes.txt").write_bytes(_NOTES["notes.txt"])


def _thing_digest() -> str:
    text = "a new first line\n" + lines()
    base = {"a.txt": text, "b.txt": lines(), "c.txt": lines()}
    return digest(make_tar({f"thing-1.1/{path}": each for path, each in base.items()}))


def _reviewable(box: Sandbox) -> None:
    """A bump that was finished and not yet reviewed."""
    _to_bump(box)
    box.project.run("bump", "demo", "--to", "latest").ok()


def _conflicting(box: Sandbox) -> Project:
    """An applied stack whose first patch conflicts with where the branch is now."""
    upstream, project = box.upstream("conflicting"), box.project
    if upstream.resolve("refs/heads/main") is None:
        base = {"a.txt": lines(), "b.txt": lines(), "c.txt": lines()}
        old = upstream.commit(base, branch="old")
        upstream.commit({"a.txt": lines({5: "upstream five\n"})}, parents=(old,))
    old = CommitId(str(upstream.resolve("refs/heads/old")))
    project.component("demo", upstream, old, small_patches(), track="main")
    project.run("apply").ok()
    (project.checkout("demo") / "notes.txt").write_bytes(_NOTES["notes.txt"])
    assert project.run("bump", "demo", "--to", "latest", "--dry-run").code == 3
    return project


def _with_merger(box: Sandbox) -> None:
    """The same, and a merger for it."""
    path = _conflicting(box).root / "manifests" / "demo.yaml"
    data = yaml.safe_load(path.read_text())
    run = 'sed -i -e "/^|||||||/,/^>>>>>>>/d" -e "/^<<<<<<</d" -e "s/^line 6$/six/"'
    run += ' "$PATCHKIT_RESULT"'
    data["mergers"] = [{"files": ["a.txt"], "run": run}]
    path.write_text(yaml.safe_dump(data, sort_keys=False))


def _halted(box: Sandbox) -> Project:
    """A bump that waits at the conflict, which is resolved."""
    project = _conflicting(box)
    assert project.run("bump", "demo", "--to", "latest").code == 3
    (project.checkout("demo") / "a.txt").write_bytes(_RESOLVED["a.txt"])
    return project


def _halted_first(box: Sandbox) -> Project:
    """A bump that waits at the first one of two conflicts."""
    upstream, project = box.upstream("twice"), box.project
    if upstream.resolve("refs/heads/main") is None:
        base = {"a.txt": lines(), "b.txt": lines(), "c.txt": lines()}
        old = upstream.commit(base, branch="old")
        there = {"a.txt": lines({5: "upstream five\n"}), "b.txt": lines({10: "X\n"})}
        upstream.commit(there, parents=(old,))
    old = CommitId(str(upstream.resolve("refs/heads/old")))
    project.component("demo", upstream, old, small_patches(), track="main")
    project.run("apply").ok()
    (project.checkout("demo") / "notes.txt").write_bytes(_NOTES["notes.txt"])
    assert project.run("bump", "demo", "--to", "latest").code == 3
    return project


def _halted_twice(box: Sandbox) -> None:
    """A bump that waits at its second conflict, the first one resolved by hand."""
    project = _halted_first(box)
    (project.checkout("demo") / "a.txt").write_bytes(_RESOLVED["a.txt"])
    assert project.run("continue").code == 3
    (project.checkout("demo") / "b.txt").write_bytes(_SECOND["b.txt"])


_SECOND = {"b.txt": lines({10: "both tens\n"}).encode()}


def _committed(box: Sandbox) -> None:
    """A bump that waits at the conflict, which is resolved and committed."""
    checkout = _halted(box).checkout("demo")
    git_in(checkout, "commit", "-q", "-a", "-m", "Resolved")


def _proposed(box: Sandbox) -> None:
    """A bump that waits at its only conflict, for which a merge is proposed."""
    project = _conflicting(box)
    assert project.run("bump", "demo", "--to", "latest").code == 3
    _propose(box)


def _proposed_first(box: Sandbox) -> None:
    """The same at the first one of two."""
    _halted_first(box)
    _propose(box)


def _propose(box: Sandbox) -> None:
    found = box.project.run("mcp", "--only", "conflict").json
    files = {"a.txt": ["upstream five\nsix\n"]}
    given = {"conflict": found["conflict"], "files": files, "dropped": ["five"]}
    box.stdin.write_text(json.dumps(given))


def _bumped(box: Sandbox) -> None:
    _halted(box).run("continue").ok()


_RESOLVED = {"a.txt": lines({5: "both fives\n", 6: "six\n"}).encode(), **_NOTES}


def _one_edit(box: Sandbox) -> None:
    stack = _stacked(box)
    stack.edit("c.txt", "line 3\n", "three\n")
    (stack.checkout / "notes.txt").write_bytes(_NOTES["notes.txt"])


def _overlapping(box: Sandbox) -> None:
    """Two patches on lines next to each other."""
    base: dict[str, Content] = {"a.txt": lines(), "b.txt": lines(), "c.txt": lines()}
    one, two = (
        base | {"a.txt": lines({5: "five\n"})},
        base | {"a.txt": lines({5: "five\n", 6: "6\n"})},
    )
    two["b.txt"] = lines({9: "nine\n"})
    patches = {"one.patch": make_patch(base, one), "two.patch": make_patch(one, two)}
    stack = Stacked.of(box.project, box.upstream("stacked"), patches)
    (stack.checkout / "notes.txt").write_bytes(_NOTES["notes.txt"])


def _with_notes(box: Sandbox) -> None:
    stack = _stacked(box)
    (stack.checkout / "notes.txt").write_bytes(_NOTES["notes.txt"])


def _copied_out(box: Sandbox) -> None:
    """A copy of the checkout's files, as out of a container, in which a line is edited."""
    _with_notes(box)
    copy = {name: (box.project.checkout("demo") / name).read_bytes() for name in ("a.txt", "b.txt")}
    copy["a.txt"] = copy["a.txt"].replace(b"five\n", b"5\n")
    write_files(box.project.root / "copy", dict(copy))


def _dropped(box: Sandbox) -> None:
    _with_notes(box)
    box.project.run("drop", "three").ok()


def _taken_up(box: Sandbox) -> None:
    _one_edit(box)
    box.project.run("refresh", "--new", "mine").ok()


def _incoming(box: Sandbox) -> None:
    project, upstream = box.project, box.upstream("stacked")
    pin = upstream.commit({"a.txt": lines(), "b.txt": lines(), "c.txt": lines()}, parents=())
    project.component("demo", upstream, pin)
    project.run("fetch").ok()
    project.write({f"incoming/000{n}-{name}": d for n, (name, d) in enumerate(_numbered())})


def _numbered() -> list[tuple[str, bytes]]:
    return list(small_patches().items())


def _incoming_conflict(box: Sandbox) -> Project:
    """A patch that was made where the branch is now, and conflicts with the pin."""
    project = _conflicting(box)
    there = {"a.txt": lines({5: "upstream five\n"})}
    after = {"a.txt": lines({5: "both fives\n", 6: "six\n"}), "d.txt": "new\n"}
    project.write({"patches/demo/series": "", "other.patch": make_patch(there, after)})
    project.run("apply", "--accept").ok()
    return project


def _import_halted(box: Sandbox) -> None:
    """An import that waits at the conflict, which is resolved."""
    project = _incoming_conflict(box)
    assert project.run("import", "other.patch", "--3way").code == 3
    (project.checkout("demo") / "a.txt").write_bytes(_RESOLVED["a.txt"])


def _kitchen(box: Sandbox) -> tuple[Project, Upstream]:
    project, upstream = box.project, box.upstream("kitchen")
    if upstream.resolve("refs/heads/main") is None:
        upstream.commit({"src/a.py": _CODE})
    pin = str(upstream.resolve("refs/heads/main"))
    project.component("demo", upstream, pin, {})
    project.run("fetch").ok()
    return project, upstream


def _generated(box: Sandbox) -> None:
    """A recipe that changed since its patch was made."""
    project, _ = _kitchen(box)
    recipe = "patches/demo/drop-fuser.recipe.yml"
    project.write({"patches/demo/series": "drop-fuser.patch\n"})
    project.write({recipe: recipe_text({**DROP, "files": ["src/b.py"], "expect": 0})})
    project.write({recipe: recipe_text(DROP)})
    project.run("refresh").ok()
    project.run("apply").ok()
    other = {**DROP, "remove": "lines", "id": "drop-all"}
    text = {"id": "os", "find": "import os", "replace": "import sys", "files": ["src/a.py"]}
    project.write({recipe: recipe_text(other, text=(text,))})


def _with_rules(box: Sandbox) -> None:
    """Sites that nobody has reviewed."""
    project, upstream = _kitchen(box)
    rule = {"id": "fuser", "language": "python", "files": ["src/**"]}
    rule |= {"rule": {"kind": "decorator", "has": {"pattern": "fuser"}}}  # type: ignore[dict-item]
    text = {"version": 1, "description": "decorators", "rules": [rule]}
    project.write({"patches/fuser.rules.yml": yaml.safe_dump(text)})
    rules = {"rules": ["patches/fuser.rules.yml"]}
    project.component(
        "demo", upstream, str(upstream.resolve("refs/heads/main")), {}, residual=rules
    )


SCENES = (
    Scene("fetch", ("fetch",), _cold),
    Scene("apply first", ("apply",), _cold,
          parts=tuple(("apply", "-c", name) for name in ("demo", "packed"))),
    Scene("apply", ("apply", "--accept"), _moving, _NOTES),
    Scene("apply --force", ("apply", "--accept", "--force"), _over_edits, _FORCED),
    Scene("apply refused", ("apply", "--accept"), _over_edits, _FORCED),
    Scene("refresh", ("refresh",), _edited, _NOTES),
    Scene("refresh, new pin", ("refresh",), _pin_moved, _NOTES, done=frozenset({1})),
    Scene("refresh, recipe", ("refresh",), _generated, done=frozenset({1})),
    Scene("bump", ("bump", "demo", "--to", "latest"), _to_bump, _NOTES),
    Scene("bump, archive", ("bump", "demo", "--to", "1.1", "--sha256", _thing_digest()), _packed,
          _NOTES),
    Scene("bump -o", ("bump", "demo", "--to", "latest", "-o", "page.html"), _to_bump,
          _NOTES, pages=("page.html",)),
    Scene("bump -o, later", ("bump", "demo", "-o", "page.html"), _reviewable, _NOTES,
          pages=("page.html",)),
    Scene("bump, conflict", ("bump", "demo", "--to", "latest"), _conflicting, _NOTES,
          done=frozenset({1, 2, 3})),
    Scene("bump --run", ("bump", "demo", "--to", "latest", "--run"), _with_merger, _NOTES,
          done=frozenset({1, 2})),
    Scene("continue", ("continue",), _halted, _NOTES, done=frozenset({0, 1, 2})),
    Scene("mcp --only merge", ("mcp", "--only", "merge"), _proposed, _NOTES,
          done=frozenset({0, 1, 2})),
    Scene("mcp --only merge, first", ("mcp", "--only", "merge"), _proposed_first, _NOTES,
          done=frozenset({1, 2})),
    Scene("continue, committed", ("continue",), _committed, _RESOLVED, done=frozenset({0, 1, 2})),
    Scene("skip", ("skip",), _halted, _NOTES, done=frozenset({0, 1, 2})),
    Scene("abort", ("abort",), _halted, _RESOLVED, done=frozenset({0, 1, 2})),
    Scene("undo", ("undo",), _bumped, _NOTES, done=frozenset({0, 1, 2})),
    Scene("continue, second", ("continue",), _halted_twice, _NOTES, done=frozenset({0, 1, 2})),
    Scene("undo, second", ("undo",), _halted_twice, _SECOND | _NOTES, once=True),
    Scene("abort, second", ("abort",), _halted_twice, _SECOND | _RESOLVED,
          done=frozenset({0, 1, 2})),
    Scene("apply --force, waiting", ("apply", "--force"), _halted, _RESOLVED),
    Scene("import", ("import", "incoming"), _incoming, done=frozenset({0, 1, 4})),
    Scene("import --3way", ("import", "other.patch", "--3way"), _incoming_conflict, _NOTES,
          done=frozenset({0, 1, 2, 3})),
    Scene("continue, import", ("continue",), _import_halted, _NOTES, done=frozenset({0, 1, 2})),
    Scene("abort, import", ("abort",), _import_halted, _RESOLVED, done=frozenset({0, 1, 2})),
    Scene("edit", ("edit", "two", "--message", "Other words"), _one_edit, _NOTES),
    Scene("rename", ("edit", "two", "--name", "second"), _one_edit, _NOTES, done=frozenset({2})),
    Scene("drop", ("drop", "three"), _with_notes, _NOTES, done=frozenset({2})),
    Scene("move", ("move", "three", "--to", "1"), _one_edit, _NOTES),
    Scene("fold", ("fold", "two", "--to", "one"), _one_edit, _NOTES, done=frozenset({2})),
    Scene("split", ("split", "three", "--new", "four", "--file", "added.txt"), _one_edit, _NOTES,
          done=frozenset({2})),
    Scene("move, merged", ("move", "two", "--to", "1"), _overlapping, _NOTES),
    Scene("fold, merged", ("fold", "one", "--to", "two"), _overlapping, _NOTES,
          done=frozenset({2})),
    Scene("undo, drop", ("undo",), _dropped, _NOTES, done=frozenset({1})),
    Scene("undo, new", ("undo",), _taken_up, _NOTES, done=frozenset({1})),
    Scene("new", ("refresh", "--new", "mine"), _one_edit, _NOTES, done=frozenset({1, 2})),
    Scene("refresh --from", ("refresh", "--from", "copy"), _copied_out, _NOTES),
    Scene("export", ("export", "--format", "quilt", "--output", "quilt"), _one_edit, _NOTES,
          done=frozenset({2})),
    Scene("export for Yocto", ("export", "--format", "yocto", "--output", "layer"), _one_edit,
          _NOTES, done=frozenset({2})),
    Scene("export mailbox", ("export", "--output", "m.mbox"), _one_edit, done=frozenset({2})),
    Scene("drift", ("drift",), _to_bump, _NOTES),
    Scene("check --only sites", ("check", "--only", "sites", "--accept", "--reason", "known"),
          _with_rules),
    *PROJECT_SCENES,
)  # fmt: skip

#: The scenes of commands that change a checkout that is there.
EDITED = (
    "apply",
    "apply --force",
    "apply --force, waiting",
    "refresh",
    "refresh, recipe",
    "drop",
    "fold",
    "undo, drop",
    "undo, new",
    "new",
    "bump",
    "bump, conflict",
    "continue",
    "continue, second",
    "skip",
    "abort",
    "abort, second",
    "undo",
    "undo, second",
)
