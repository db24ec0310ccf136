"""Every exit code that a command names, reached; the whole output is golden.

`demo` is the project in all of them: an upstream with two files, two patches on it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from patchkit.cli.catalog import all_commands, split_command
from patchkit.cli.command import about
from patchkit.errors import ExitCode
from patchkit.report.json import one_word
from tests.support.commands import Ran, run, run_process
from tests.support.golden import Golden
from tests.support.projects import Project
from tests.support.repos import Upstream, git_in, make_patch

pytestmark = pytest.mark.slow

_HELLO = "def hello():\n    greet('world')\n    return 0\n"
_OTHER = "".join(f"line {n}\n" for n in range(1, 21))
_START = {"hello.py": _HELLO, "other.txt": _OTHER}
_WARM = {"hello.py": _HELLO.replace("world", "dear world"), "other.txt": _OTHER}
_DONE = _WARM | {"other.txt": _OTHER.replace("line 10\n", "line ten\n")}

_WARMLY = make_patch(_START, _WARM, subject="Greet warmly", body="People like it.")
_TEN = make_patch(_WARM, _DONE, subject="Spell ten", body="Numbers are words, too.")


class Scene:
    """The project and what can befall it before the command runs."""

    def __init__(self, project: Project, upstream: Upstream) -> None:
        self.project = project
        self.upstream = upstream
        self.pin = upstream.commit(dict(_START))
        self.manifest = project.component(
            "demo", upstream, self.pin, {"greet-warmly.patch": _WARMLY, "spell-ten.patch": _TEN}
        )

    def applied(self) -> None:
        """`patchkit apply` has been run."""
        self.project.prepare("apply").ok()

    def lost(self) -> None:
        """A patch that no manifest has lies about."""
        self.project.write({"lost/greet-warmly.patch": _WARMLY})

    def edited(self) -> None:
        """A line of a patch was edited in the checkout."""
        self.applied()
        self._edit("hello.py", "dear world", "dear, dear world")

    def edited_elsewhere(self) -> None:
        """A line that belongs to no patch was edited in the checkout."""
        self.applied()
        self._edit("other.txt", "line 2\n", "line two\n")

    def broken_upstream(self) -> None:
        """Commits landed that break the first patch, mend it and break it again."""
        self.upstream.commit({"hello.py": _HELLO.replace("world", "moon")}, "Greet the moon (#3)")
        self.upstream.commit({"hello.py": _HELLO}, 'Revert "Greet the moon (#3)" (#4)')
        self.upstream.commit({"hello.py": _HELLO.replace("world", "sun")}, "Greet the sun (#5)")

    def conflicted(self) -> None:
        """The pin is at a commit that the first patch does not fit."""
        self._pin(self.upstream.commit({"hello.py": _HELLO.replace("world", "moon")}))

    def bumped(self) -> None:
        """Upstream has moved on, beside what the first patch changes."""
        self.upstream.commit({"hello.py": _HELLO.replace("return 0", "return None")})

    def edited_before_bump(self) -> None:
        """A line of a patch was edited, and upstream has moved on."""
        self.edited()
        self.bumped()

    def halted(self) -> None:
        """A bump stopped at the first patch."""
        self.applied()
        self.broken_upstream()
        self.project.prepare("bump", "demo", *_MAIN).ends(3)

    def resolved(self) -> None:
        """The same, and its conflict is resolved."""
        self.halted()
        path = self.project.checkout("demo") / "hello.py"
        path.write_text(_HELLO.replace("world", "dear sun"))

    def halted_before_another(self) -> None:
        """A bump stopped at the first patch, and the second one will conflict, too."""
        self.upstream.commit({"other.txt": _OTHER.replace("line 10\n", "line X\n")}, "Spell X")
        self.halted()

    def resolved_before_another(self) -> None:
        """The same, and the first conflict is resolved."""
        self.upstream.commit({"other.txt": _OTHER.replace("line 10\n", "line X\n")}, "Spell X")
        self.resolved()

    def halted_and_locked(self) -> None:
        """A bump stopped, and a git command holds the checkout's index."""
        self.halted()
        (self.project.checkout("demo") / ".git/index.lock").touch()

    def set_aside(self) -> None:
        """An edit was replaced by force."""
        self.edited()
        series = self.project.root / "patches/demo/series"
        text = series.read_text()
        series.write_text(text.partition("\n")[0] + "\n")
        self.project.prepare("apply", "--accept", "--force").ok()
        series.write_text(text)
        self.project.prepare("apply", "--accept").ok()

    def set_aside_and_edited(self) -> None:
        """The same, and the line was edited once more."""
        self.set_aside()
        self._edit("hello.py", "dear world", "cruel world")

    def set_aside_and_locked(self) -> None:
        """The same, and git commands are at work in the checkout."""
        self.set_aside()
        for name in ("index.lock", "packed-refs.lock"):
            (self.project.checkout("demo") / ".git" / name).touch()

    def bump_done(self) -> None:
        """A bump is through."""
        self.applied()
        self.bumped()
        self.project.prepare("bump", "demo", *_MAIN).ok()

    def moved_after_apply(self) -> None:
        """The same, after the old stack was applied."""
        self.applied()
        self.conflicted()

    def installed(self) -> None:
        """The files of the upstream are in a folder, patched."""
        self.project.write({"site/hello.py": _HELLO, "site/other.txt": _OTHER})
        self.project.prepare("install", "site").ok()

    def copied(self) -> None:
        """The files of the upstream are in a folder, without the patches."""
        self.project.write({"site/hello.py": _HELLO, "site/other.txt": _OTHER})

    def installed_with_damage(self) -> None:
        """The same, and the receipt was damaged."""
        self.installed()
        self.project.write({"site/.patchkit/demo.demo.receipt.json": "{"})

    def folded(self) -> None:
        """One patch, `both`, of two."""
        self.applied()
        self.project.prepare("fold", "spell-ten", "--to", "greet-warmly").ok()
        self.project.prepare("edit", "greet-warmly", "--name", "both").ok()

    def committed(self) -> None:
        """A commit of the user's stands on top of the stack."""
        self.edited_elsewhere()
        checkout = self.project.checkout("demo")
        git_in(checkout, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qam", "Mine")

    def testing(self, inner: str = "", record: str = "") -> None:
        """The component has tests of upstream's."""
        xml = f'<testsuite><testcase name="one">{inner}</testcase></testsuite>'
        tests = json.dumps({"run": f"printf %s '{xml}' > $PATCHKIT_JUNIT"})
        self.manifest.write_text(self.manifest.read_text() + f"    upstream_tests: {tests}\n")
        if record:
            self.project.write({"manifests/demo.tests.json": record})

    def misspelt(self) -> None:
        """The manifest has a key that does not exist."""
        self.manifest.write_text(self.manifest.read_text() + "colour: red\n")

    def needing(self) -> None:
        """The manifest wants a variable that nobody has set."""
        wish = "environment: {variables: {SET_BY_NOBODY: yes please}}\n"
        self.manifest.write_text(self.manifest.read_text() + wish)

    def corrupt(self) -> None:
        """A patch file was damaged."""
        self.project.write({"patches/demo/spell-ten.patch": _TEN.replace(b"@@ -7,7", b"@@ -7,9")})

    def file_in_the_way(self) -> None:
        """There is a file where the folder of the issues is to be."""
        self.result(Scene.conflicted)
        self.project.write({"issues": "mine\n"})

    def gone(self) -> None:
        """The upstream cannot be reached."""
        self.upstream.path.rename(self.upstream.path.with_name("elsewhere"))

    def pinned_badly(self) -> None:
        """A patch of another repository has another hash than the manifest says."""
        entry = {"git": self.upstream.url, "commit": self.pin, "path": "hello.py"}
        entry |= {"sha256": "0" * 64, "name": "hello.patch"}
        text = self.manifest.read_text()
        self.manifest.write_text(text[: text.index("patches:")] + f"patches: [{entry}]\n")

    def pinned_nowhere(self) -> None:
        """The same, and it cannot be reached."""
        self.pinned_badly()
        self.gone()

    def outside(self, *, fits: bool) -> None:
        """A folder `outside` has a patch to import."""
        end = {"other.txt": _OTHER.replace("line 20\n" if fits else "line 10\n", "the end\n")}
        self.project.write({"outside/0001-end.patch": make_patch({"other.txt": _OTHER}, end)})

    def garbage_outside(self) -> None:
        """A folder `outside` has a file that is no patch."""
        self.project.write({"outside/0001-end.patch": b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n"})

    def rewritten(self, *lines: str) -> None:
        """A script of the project rewrites the upstream's text."""
        script = ["cd /w/demo", "sed -i 's/line 20/the end/' other.txt", *lines]
        self.project.write({"build.sh": "\n".join(script)})
        rewrites = "    rewrites: [{files: [build.sh]}]\n"
        self.manifest.write_text(self.manifest.read_text() + rewrites)

    def rewritten_twice(self) -> None:
        """The same, and it applies a patch that changes the line, too."""
        self.outside(fits=True)
        self.rewritten("git apply 0001-end.patch")

    def rewritten_unreachable(self) -> None:
        """A script rewrites it, and it cannot be reached."""
        self.rewritten()
        self.gone()

    def searching(self) -> None:
        """A rule file names a line of the upstream."""
        rule = {"id": "zero", "language": "python", "rule": {"pattern": "return 0"}}
        rules = {"version": 1, "description": "zeros", "rules": [{**rule, "files": ["*.py"]}]}
        self.project.write({"patches/zero.rules.yml": json.dumps(rules)})
        residual = "    residual: {rules: [patches/zero.rules.yml]}\n"
        self.manifest.write_text(self.manifest.read_text() + residual)

    def overriding(self) -> None:
        """Another component replaces a function of the upstream while it runs."""
        pin = self.upstream.commit({"tool.py": "put('hello.hello', 1)\n"}, branch="tool")
        rule = {"id": "put", "language": "python", "rule": {"pattern": "put($TARGET, $_)"}}
        rules = {"version": 1, "description": "calls", "rules": [{**rule, "files": ["*.py"]}]}
        self.project.write({"patches/calls.rules.yml": json.dumps(rules)})
        overrides = {"target": "demo", "rule": "patches/calls.rules.yml", "packages": ["hello"]}
        self.project.component("tool", self.upstream, pin, overrides=[overrides])

    def contracting(self, call: str = "hello()") -> None:
        """Another component calls a function of the upstream."""
        self.project.component("demo", self.upstream, self.pin, contracts={"packages": ["hello"]})
        pin = self.upstream.commit({"tool.py": f"from hello import hello\n{call}\n"}, branch="tool")
        self.project.component("tool", self.upstream, pin, contracts={"packages": ["tool"]})

    def contracting_wrongly(self) -> None:
        """The same, with an argument that it does not take."""
        self.contracting("hello(loudly=True)")

    def contracting_unreachable(self) -> None:
        """The same, and nothing can be fetched."""
        self.contracting()
        self.gone()

    def overriding_unreachable(self) -> None:
        """The same, and nothing can be fetched."""
        self.overriding()
        self.gone()

    def following(self, branch: str = "npu") -> None:
        """The series follows a branch, which has a commit of its own on the pin."""
        files = {"other.txt": _DONE["other.txt"]}
        self.upstream.commit(files, "Spell ten", branch="npu", parents=(self.pin,))
        entry = {"series": "patches/demo/series", "branch": branch}
        self.project.component("demo", self.upstream, self.pin, [entry], track="main")
        self.project.write({"patches/demo/series": ""})

    def following_and_edited(self) -> None:
        """The same, and the checkout has an edit."""
        self.following()
        self.project.prepare("apply").ok()
        self._edit("hello.py", "world", "moon")

    def following_nothing(self) -> None:
        """The series follows a branch that is not there."""
        self.following("gone")

    def following_unreachable(self) -> None:
        """The series follows a branch, and nothing can be fetched."""
        self.following()
        self.gone()

    def recipe(self, **rule: object) -> None:
        """`answer.recipe.yml` is there, beside the series and not in it."""
        example = {"before": "return 0\n", "after": "return 42\n"}
        known = {"id": "answer", "language": "python", "rule": {"pattern": "return 0"}}
        deed = {"fix": "return 42", "files": ["*.py"], "expect": 1, "examples": [example]}
        data = {"version": 1, "description": "Answer", "rules": [{**known, **deed, **rule}]}
        self.project.write({"patches/demo/answer.recipe.yml": json.dumps(data)})

    def result(self, before: Callable[[Scene], None] = lambda _: None) -> None:
        """A job wrote its result; another one was to look at one more component."""
        before(self)
        self.project.write({"one.json": self.project.run("check", "--json").out})
        jobs = self.project.run("ci", "--matrix", "--json").out.replace(
            '"demo: demo"', '"demo: other"'
        )
        self.project.write({"jobs.json": jobs})

    def _edit(self, name: str, old: str, new: str) -> None:
        path = self.project.checkout("demo") / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))

    def _pin(self, commit: str) -> None:
        self.manifest.write_text(self.manifest.read_text().replace(self.pin, commit))


def _untouched(_scene: Scene) -> None:
    """Nothing has been done yet."""


_State = Callable[[Scene], None]
_MAIN = ("--to", "main")
_OF_A_VERB: dict[int, _State] = {
    0: Scene.applied,
    1: Scene.committed,
    4: Scene.misspelt,
    5: Scene.gone,
}
_OF_AN_EXPORT: dict[int, _State] = {0: _untouched, 4: Scene.conflicted, 5: Scene.gone}


#: Command -> exit code -> what happens before the command ends with it.
_ENDS: dict[str, dict[int, _State]] = {
    "init": {**dict.fromkeys((0, 2, 5), _untouched), 1: Scene.lost},
    "add": {0: _untouched, 4: Scene.misspelt, 5: _untouched},
    "import": {
        0: lambda s: s.outside(fits=True),
        1: lambda s: s.outside(fits=False),
        3: lambda s: s.outside(fits=False),
        4: Scene.garbage_outside,
        5: Scene.gone,
    },
    "import --rewrites": {
        0: Scene.rewritten,
        1: Scene.rewritten_twice,
        4: Scene.misspelt,
        5: Scene.rewritten_unreachable,
    },
    "check --only manifest": {0: _untouched, 1: _untouched, 4: Scene.misspelt},
    "status --resolved": {0: _untouched, 4: Scene.misspelt},
    "fetch": {0: _untouched, 4: Scene.pinned_badly, 5: Scene.gone},
    "apply": {0: _untouched, 1: Scene.edited, 4: Scene.corrupt, 5: Scene.gone},
    "install": {0: Scene.installed, 1: _untouched, 4: Scene.installed_with_damage, 5: Scene.gone},
    "refresh --from": {0: Scene.installed, 1: Scene.copied, 4: Scene.corrupt, 5: Scene.gone},
    "refresh --from-branch": {
        0: Scene.following,
        1: Scene.following_and_edited,
        4: Scene.following_nothing,
        5: Scene.following_unreachable,
    },
    "check --only installed": {
        0: Scene.installed,
        1: _untouched,
        4: Scene.installed_with_damage,
        5: _untouched,
    },
    "bisect": {0: _untouched, 1: _untouched, 4: Scene.conflicted, 5: Scene.gone},
    "check --only tests": {
        0: Scene.testing,
        1: lambda s: s.testing("<failure/>"),
        4: lambda s: s.testing(record="{"),
        5: lambda s: s.testing("<"),
    },
    "check": {0: _untouched, 1: Scene.conflicted, 4: Scene.corrupt, 5: Scene.gone},
    "drift": {0: _untouched, 1: Scene.broken_upstream, 4: _untouched, 5: Scene.gone},
    "plan": {0: Scene.broken_upstream, 4: _untouched, 5: Scene.gone},
    "ci": {0: _untouched, 1: Scene.conflicted, 4: Scene.corrupt, 5: Scene.gone},
    "ci --matrix": {0: _untouched, 4: Scene.misspelt},
    "ci --merge": {
        0: Scene.result,
        1: lambda s: s.result(Scene.conflicted),
        4: _untouched,
        5: Scene.result,
    },
    "ci --issues": {
        0: lambda s: s.result(Scene.conflicted),
        4: _untouched,
        5: Scene.file_in_the_way,
    },
    "status": {0: Scene.edited, 1: Scene.edited, 4: Scene.misspelt},
    "refresh": {
        0: Scene.edited,
        1: Scene.edited_elsewhere,
        3: Scene.moved_after_apply,
        4: Scene.misspelt,
        5: Scene.gone,
    },
    "bump": {
        0: Scene.bumped,
        1: Scene.edited_before_bump,
        3: Scene.broken_upstream,
        4: Scene.misspelt,
        5: Scene.gone,
    },
    "continue": {
        0: Scene.resolved,
        1: Scene.halted,
        3: Scene.resolved_before_another,
        4: Scene.misspelt,
        5: Scene.resolved,
    },
    "skip": {
        0: Scene.halted,
        1: Scene.applied,
        3: Scene.halted_before_another,
        4: Scene.misspelt,
        5: Scene.halted,
    },
    "abort": {0: Scene.halted, 1: Scene.applied, 4: Scene.misspelt, 5: Scene.halted_and_locked},
    "undo": {0: Scene.bump_done, 1: Scene.applied, 4: Scene.misspelt, 5: Scene.halted_and_locked},
    "show": {0: Scene.applied, 4: Scene.misspelt, 5: Scene.halted},
    "undo --show": {0: Scene.set_aside, 4: Scene.misspelt},
    **dict.fromkeys(("edit", "edit --name", "drop", "move", "fold", "import --vendor"), _OF_A_VERB),
    "split": _OF_A_VERB | {0: Scene.folded},
    "refresh --new": {
        0: Scene.edited_elsewhere,
        1: Scene.applied,
        4: Scene.misspelt,
        5: Scene.gone,
    },
    "export": _OF_AN_EXPORT,
    "export --format machine": {0: _untouched, 1: _untouched, 4: Scene.misspelt},
    "check --only recipes": {
        0: Scene.recipe,
        1: lambda s: s.recipe(fix="return 4"),
        4: lambda s: s.recipe(colour="red"),
    },
    "check --only machine": {0: _untouched, 1: Scene.needing, 4: Scene.misspelt},
    "log": {0: Scene.applied, 4: Scene.corrupt, 5: Scene.gone},
    "check --only sites": {
        0: Scene.searching,
        1: Scene.searching,
        4: Scene.misspelt,
        5: Scene.gone,
    },
    "check --only calls": {
        0: Scene.contracting,
        1: Scene.contracting_wrongly,
        4: Scene.misspelt,
        5: Scene.contracting_unreachable,
    },
    "check --only overrides": {
        0: Scene.overriding,
        1: Scene.overriding,
        4: Scene.misspelt,
        5: Scene.overriding_unreachable,
    },
}

_DEMO = ("--git", "https://example.com/a/demo.git", "--ref", "1" * 40)
_OUT = ("--output", "out")
_COLD = ("--cache", "none", "--offline")

#: The words behind a command, to reach one exit code or all others.
_WORDS: dict[str | tuple[str, int], tuple[str, ...]] = {
    "init": ("new", *_DEMO),
    ("init", 1): ("new", "--here"),
    ("init", 2): ("demo", *_DEMO),
    ("init", 5): ("new", "--git", "file:///nowhere.git", "--ref", "main"),
    "add": ("new", *_DEMO),
    ("add", 5): ("new", "--git", "file:///nowhere.git", "--ref", "main"),
    "import": ("outside",),
    ("import", 3): ("outside", "--3way"),
    ("import", 5): ("patches/demo/greet-warmly.patch",),
    ("check --only manifest", 1): ("--strict",),
    "install": ("site",),
    ("install", 1): ("patches",),
    ("install", 5): ("patches",),
    "refresh --from": ("site",),
    ("refresh --from", 4): ("patches",),
    ("refresh --from", 5): ("patches",),
    "check --only installed": ("-m", "demo", "site"),
    ("check --only installed", 1): ("patches",),
    ("check --only installed", 4): ("site",),
    ("check --only installed", 5): ("/bin/false",),
    "bisect": (*_MAIN, "--run", "true"),
    ("bisect", 1): (*_MAIN, "--run", "false"),
    ("check --only tests", 0): ("--accept",),
    "drift": _MAIN,
    ("drift", 4): (),
    "plan": _MAIN,
    ("plan", 4): (),
    "ci --merge": ("one.json",),
    ("ci --merge", 4): ("manifests/demo.yaml",),
    ("ci --merge", 5): ("one.json", "jobs.json"),
    "ci --issues": ("--output", "issues", "one.json"),
    ("ci --issues", 4): ("--output", "issues", "manifests/demo.yaml"),
    ("status", 1): ("--strict",),
    "bump": ("demo", *_MAIN),
    ("continue", 5): _COLD,
    ("skip", 5): _COLD,
    "show": ("1",),
    ("show", 5): ("main", *_COLD),
    "undo --show": ("2",),
    "edit": ("spell-ten", "--message", "Write ten as a word"),
    "edit --name": ("ten-as-a-word", "spell-ten"),
    "drop": ("2",),
    "move": ("spell-ten", "--to", "greet-warmly"),
    "fold": ("spell-ten", "--to", "greet-warmly"),
    "split": ("both", "--new", "ten", "--file", "other.txt"),
    "refresh --new": ("count-words",),
    "export": ("--format", "quilt", *_OUT),
    ("export --format machine", 1): ("--dry-run",),
    ("check --only machine", 0): ("metadata",),
    ("check --only machine", 1): ("variables",),
    ("check --only sites", 0): ("--accept", "--reason", "as it should be"),
    ("check --only overrides", 0): ("--accept",),
}

#: (command, exit code, what happened before, command line)
CASES: list[tuple[str, int, _State, tuple[str, ...]]] = [
    (command, code, before, (*command.split(), *words))
    for command, ends in _ENDS.items()
    for code, before in ends.items()
    for words in [_WORDS.get((command, code), _WORDS.get(command, ()))]
]

#: Left out: long, not the same everywhere, or only after a lock was waited for.
ELSEWHERE = {
    ("completion", 0),
    ("init --schema", 0),
    ("mcp", 0),  # tests/extensions/agents
    *((f"mcp --only {form}", code) for form in ("conflict", "merge") for code in (0, 1, 3, 4)),
}


@pytest.mark.parametrize(
    ("command", "code", "before", "argv"),
    CASES,
    ids=[f"{one_word(command)}-{code}" for command, code, *_ in CASES],
)
def test_exit(  # noqa: PLR0917
    command: str,
    code: int,
    before: _State,
    argv: tuple[str, ...],
    project: Project,
    upstream: Upstream,
    golden: Golden,
) -> None:
    before(Scene(project, upstream))
    ran = project.run(*argv).ends(code)
    golden(f"exit/{one_word(command)}-{code}", ran)
    _check_json(command, code, project, argv)


def test_every_exit_code_that_is_named_is_reached() -> None:
    named = {(name, int(code)) for name in all_commands() for code in about(name).exits}
    usage = {(name, int(ExitCode.USAGE)) for name in all_commands()}
    reached = {(command, code) for command, code, *_ in CASES}
    assert named - usage - reached - ELSEWHERE == set()


@pytest.mark.parametrize("name", all_commands())
def test_an_unknown_option_is_a_usage_error(name: str) -> None:
    ran = run(*name.split(), "--no-such-option").ends(ExitCode.USAGE)
    message, hint = ran.err.splitlines()
    assert message.startswith(f"error: {name}: no such option: --no-such-option")
    assert hint == f"hint: see `patchkit {name} --help`"


def test_the_schema_is_printed() -> None:
    assert run("init", "--schema").ok().json["title"]


def test_the_version_needs_git(tmp_path: Path) -> None:
    run_process("--version").ok()
    ran = run_process("--version", environment=dict(os.environ) | {"PATH": str(tmp_path)}).ends(
        ExitCode.ENVIRONMENT
    )
    assert ran.err.startswith("error: git is not installed\nhint: ")


def _check_json(command: str, code: int, project: Project, argv: tuple[str, ...]) -> None:
    """Once more with --json, where that changes nothing: the same code, and an envelope."""
    name, _ = split_command(command.split()) or ("", [])
    if not about(name).result or name in _CHANGING:
        return
    ran: Ran = project.run(*argv, "--json")
    assert ran.code == code
    assert ran.json["exit_code"] == code
    known = "ci" if command == "ci --merge" else one_word(command)  # as one run over all
    assert ran.json["schema"] in (f"patchkit/{known}/2", "patchkit/error/2")


_CHANGING = {
    "edit",
    "drop",
    "move",
    "fold",
    "split",
    "continue",
    "skip",
    "abort",
    "undo",
    "init",
    "add",
    "import",
    "refresh",
    "refresh --from-branch",
    "bump",
    "import --vendor",
    "import --rewrites",
    "export",
    "apply",
    "fetch",
}
