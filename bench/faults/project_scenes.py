"""Commands that write files of a project and no checkout: a set of files, or one report."""

from __future__ import annotations

from hashlib import sha256

import yaml

from bench.faults.sandbox import Sandbox, Scene
from tests.extensions.installed.wheels import install
from tests.extensions.machine.machines import VALUES, Machine, make_project
from tests.extensions.python_guards.test_overrides import CORE, REASON, RULES, SPEED, overriding
from tests.support.projects import Project
from tests.support.repos import Files, Upstream, executable, git_in, make_patch
from tests.support.stacked import lines, small_patches

_PIN = "0123456789abcdef0123456789abcdef01234567"


def _nothing(box: Sandbox) -> None:
    """A folder with something of the user's, and no project yet."""
    box.project.write({"README.md": "mine\n"})


def _to_render(box: Sandbox) -> Project:
    folder = box.outside / "machine"
    machine = Machine(folder) if folder.exists() else Machine.create(folder)
    make_project(box.project.root, machine)
    return box.project


def _rendered(box: Sandbox) -> None:
    """Rendered for other values, and edited by hand since; a page with a table of versions."""
    project = _to_render(box)
    project.run("export", "--format", "machine", *VALUES, "--set", "devices=4").ok()
    script = project.root / "rendered/demo/install.sh"
    script.write_text(script.read_text() + "echo by hand\n")
    table = "<!-- patchkit versions: manifests/demo.yaml -->\n<!-- patchkit versions: end -->"
    project.write({"docs/page.md": f"mine\n\n{table}\nmine, too\n"})


def _overriding(box: Sandbox) -> None:
    """Functions that are replaced, and that nobody has reviewed; the lock has a component."""
    project, core, speed = box.project, box.upstream("core"), box.upstream("speed")
    if core.resolve("refs/heads/main") is None:
        core.commit(CORE)
        speed.commit(SPEED)
    project.write({"patches/calls.rules.yml": yaml.safe_dump(RULES)})
    project.component("core", core, _tip(core))
    project.component("speed", speed, _tip(speed), overrides=[overriding(REASON)])
    project.run("apply").ok()


def _rewritten(box: Sandbox) -> None:
    """A stack, and a script that rewrites its upstream's text."""
    project, core = box.project, box.upstream("core")
    if core.resolve("refs/heads/main") is None:
        core.commit(CORE)
    project.write({"build.sh": "cd /w/core\nsed -i 's/norm/rms/' core/ops.py\n"})
    project.component("core", core, _tip(core), {}, rewrites=[{"files": ["build.sh"]}])
    project.run("apply").ok()


def _by_reference(box: Sandbox) -> None:
    """A stack whose first patch is in another repository."""
    project, upstream, other = box.project, box.upstream("taken"), box.upstream("trainer")
    if upstream.resolve("refs/heads/main") is None:
        upstream.commit({"a.txt": lines(), "b.txt": lines(), "c.txt": lines()})
        other.commit({"one.patch": small_patches()["one.patch"]})
    data = small_patches()
    entry = {"git": other.url, "commit": _tip(other), "path": "one.patch"}
    entry |= {"sha256": sha256(data["one.patch"]).hexdigest()}
    project.series("demo", {name: data[name] for name in ("two.patch", "three.patch")})
    project.component("demo", upstream, _tip(upstream), [entry, {"series": "patches/demo/series"}])
    project.run("apply").ok()


def _tip(upstream: Upstream) -> str:
    return str(upstream.resolve("refs/heads/main"))


def _two(box: Sandbox) -> Project:
    """Two components; the branch of the first has moved its lines."""
    project = box.project
    for name in ("demo", "other"):
        upstream = box.upstream(name)
        if upstream.resolve("refs/heads/main") is None:
            upstream.commit({"a.txt": lines(), "b.txt": lines(), "c.txt": lines()}, branch="old")
            old = str(upstream.resolve("refs/heads/old"))
            upstream.commit({"a.txt": "a new first line\n" + lines()}, parents=(old,))
        old = str(upstream.resolve("refs/heads/old"))
        project.component(name, upstream, old, small_patches(), track="main")
    project.run("fetch").ok()
    project.run("drift")
    return project


def _carrier(box: Sandbox) -> None:
    """Patches for an upstream whose tag a Dockerfile has; another project's git around them."""
    upstream = box.upstream("carried")
    if upstream.resolve("refs/heads/main") is None:
        upstream.tag("v1.0", upstream.commit({f"{name}.txt": lines() for name in "abc"}))
    project = box.project
    clone = f"ARG CARRIED_TAG=v1.0\nRUN git clone {upstream.url}\n"
    patches = {f"carried/{number}-{name}": data for number, (name, data) in
               enumerate(small_patches().items(), 1)}  # fmt: skip
    project.write({"Dockerfile": clone, **patches})
    git_in(project.root, "init", "-q")
    git_in(project.root, "add", "-A")


def _with_submodule(box: Sandbox) -> None:
    """A stack whose pin is a submodule's commit, in the index of the git around the project."""
    project, old = _two(box), str(box.upstream("demo").resolve("refs/heads/old"))
    git_in(project.root, "init", "-q")
    git_in(project.root, "update-index", "--add", "--cacheinfo", f"160000,{old},sub")
    text = project.read("manifests/demo.yaml").replace(f"pin: {old}", "pin: {submodule: sub}", 1)
    project.write({"manifests/demo.yaml": text})
    project.run("apply").ok()


def _submodule_bumped(box: Sandbox) -> None:
    _with_submodule(box)
    box.project.run("bump", "demo", "--to", "main").ok()


def _installed(box: Sandbox) -> Project:
    """A wheel in the project's folder, whose sources are the pin's."""
    project, upstream = box.project, box.upstream("installed")
    files = {f"demo/{name}.txt": lines() for name in "abc"}
    if upstream.resolve("refs/heads/main") is None:
        upstream.commit({f"src/{path}": text for path, text in files.items()})
    moved = {"subdirectory": "src/demo"}
    project.component("demo", upstream, _tip(upstream), small_patches(), **moved)
    project.run("fetch").ok()
    install(project.root / "site", files, compiled=False)
    return project


def _run_patch() -> bytes:
    """A patch that says what may be run: all that it does to one file."""
    base: Files = {f"{name}.txt": lines() for name in "abc"}
    changed: Files = {
        "a.txt": executable(lines()),
        "b.txt": executable(lines({20: "twenty\n"})),
        "run.sh": executable("echo\n"),
    }
    return make_patch(base, {**base, **changed})


def _scripts(box: Sandbox) -> Project:
    """The wheel, and such a patch."""
    project = _installed(box)
    project.series("demo", {"run.patch": _run_patch()})
    (project.root / "site/demo/c.txt").chmod(0o755)
    return project


def _may_differ(box: Sandbox) -> None:
    """A wheel with a file that was made when it was built, which the manifest says."""
    project = _installed(box)
    wheel = {f"demo/{name}.txt": lines() for name in "abc"}
    wheel["demo/a.txt"] = lines({29: "made"})
    install(project.root / "site", wheel, compiled=False)
    upstream = box.upstream("installed")
    differing = [{"files": ["src/**"], "reason": "made when the wheel is built"}]
    project.component("demo", upstream, _tip(upstream), small_patches(), subdirectory="src/demo",
                      differing=differing)  # fmt: skip


def _another_series(box: Sandbox) -> None:
    """Packages that have the stack, whose series changed since."""
    _applied_into(box)
    box.project.series("demo", {"run.patch": _run_patch()})


def _scripts_into(box: Sandbox) -> None:
    _scripts(box).run("install", "site").ok()


def _tested(box: Sandbox) -> None:
    upstream = box.upstream("tested")
    if upstream.resolve("refs/heads/main") is None:
        upstream.commit({f"{name}.txt": lines() for name in "abc"})
    tests = {"run": "echo '<testsuite><testcase name=\"one\"/></testsuite>' > $PATCHKIT_JUNIT"}
    box.project.component("demo", upstream, _tip(upstream), small_patches(), upstream_tests=tests)
    box.project.run("apply").ok()


def _applied_into(box: Sandbox) -> None:
    _installed(box).run("install", "site").ok()


def _reports(box: Sandbox) -> None:
    project = _two(box)
    for name in ("demo", "other"):
        project.run("ci", "-c", name, "--format", "json", "--output", f"results/{name}.json")
    project.write({"report.json": "an old one\n"})


_GIT = ("--git", "https://example.com/demo.git", "--ref", _PIN)

PROJECT_SCENES = (
    Scene("init", ("init", "demo", *_GIT), _nothing, done=frozenset({0, 2, 4})),
    Scene("init --here", ("init", "carried", "--here"), _carrier, done=frozenset({2})),
    Scene("add", ("add", "third", *_GIT), _two, done=frozenset({2})),
    Scene("bump, pin in a submodule", ("bump", "demo", "--to", "main"), _with_submodule),
    Scene("undo, pin in a submodule", ("undo",), _submodule_bumped, done=frozenset({0, 1, 2})),
    Scene("export --format machine", ("export", "--format", "machine", *VALUES), _to_render),
    Scene("export --format machine --force",
          ("export", "--format", "machine", *VALUES, "--force"), _rendered),
    Scene("export --format machine -o",
          ("export", "--format", "machine", *VALUES, "--output", "docs/page.md"), _rendered),
    Scene("check --only overrides", ("check", "--only", "overrides", "--accept"), _overriding),
    Scene("import --vendor", ("import", "--vendor"), _by_reference, done=frozenset({0, 1, 2})),
    Scene("import --rewrites", ("import", "--rewrites"), _rewritten),
    Scene("ci --merge", ("ci", "--merge", "results/demo.json", "results/other.json",
                           "--format", "json", "--output", "report.json"), _reports),
    Scene("ci --issues", ("ci", "--issues", "results/demo.json", "results/other.json",
                            "--output", "issues"), _reports),
    Scene("install", ("install", "site"), _installed),
    Scene("install --reverse", ("install", "site", "--reverse"), _applied_into,
          done=frozenset({2})),
    Scene("install, modes", ("install", "site"), _scripts),
    Scene("install --reverse, modes", ("install", "site", "--reverse"), _scripts_into,
          done=frozenset({2})),
    Scene("install, another series", ("install", "site"), _another_series),
    Scene("install, files that may differ", ("install", "site"), _may_differ),
    Scene("check --only tests -o", ("check", "--only", "tests", "-o", "out.xml"), _tested,
          done=frozenset({0})),
    Scene("check --only tests --accept", ("check", "--only", "tests", "--accept"), _tested),
    Scene("bisect", ("bisect", "demo", "--run", "grep -q 'line 5' a.txt"), _two),
    Scene("bump --all", ("bump", "--all", "--to", "latest"), _two,
          parts=tuple(("bump", name, "--to", "latest") for name in ("demo", "other"))),
)  # fmt: skip
