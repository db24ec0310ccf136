"""`check` and `drift` on what rewrites the text of a component."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.support.projects import Project
from tests.support.repos import Files, Upstream, make_patch

CORE: dict[str, str] = {
    "core/__init__.py": "",
    "core/io.py": "import torch\n\n\ndef load(path):\n    return torch.load(path, 'cuda')\n",
    "core/layer.py": (
        "class Layer:\n    def forward(self, x):\n        y = norm(x)\n        return scale(y)\n\n"
        "    def other(self, x):\n        return scale(x)\n"
    ),
    "core/v1/deep/way.py": "x = 'cuda'\n",
    "setup.py": "setup(name='core')\n",
}
#: How a function of a helper module, and its callers, rewrite what they import.
HELPER = """
import inspect, os
from importlib.util import find_spec

def _file(name):
    base = next(iter(find_spec("core").submodule_search_locations))
    return os.path.join(base, *name.split("/"))

def edit(name, table):
    with open(_file(name)) as f:
        content = f.read()
    for mark, old, new in [row for row in table if row[0] not in content]:
        content = content.replace(old, new, 1)
    with open(_file(name), "w") as f:
        f.write(content)

def rewrite(owner, name, old, new):
    source = inspect.getsource(getattr(owner, name))
    exec(source.replace(old, new))
"""
CALLER = """
from helper import edit, rewrite
OLD = "scale(y)"
TABLE = (("m", "'cuda'", "'npu'"), ("n", "import torch\\n", "import torch  # n\\n"))

def first():
    \"\"\"Why it is so.\"\"\"
    edit("io.py", TABLE)

def second():
    from core.layer import Layer
    rewrite(Layer, "forward", OLD, f"fast_{OLD}")
"""


@dataclass
class Scene:
    """`core`, and what rewrites it: files of the project, or of the component `carrier`."""

    project: Project
    core: Upstream
    carrier: Upstream

    def core_is(self, files: Files, *meant: dict[str, Any], **more: Any) -> str:
        """Pin core, which files of the project rewrite."""
        pin = self.core.commit(files)
        entry: dict[str, Any] = {"files": ["docker/**", "*.sh", "*.py"], "meant": list(meant)}
        self.project.component("core", self.core, pin, rewrites=[entry], track="main", **more)
        return pin

    def findings(self) -> list[dict[str, Any]]:
        checked = self.project.run("check", "-c", "core", "--json").json
        return list(checked["components"][0]["findings"])

    def told(self) -> list[tuple[str, str]]:
        """What is found, by its code, and where."""
        return [(each["code"].removeprefix("rewrite-"), each["where"]) for each in self.findings()]

    def shell(self, *lines: str) -> list[tuple[str, str]]:
        """What is found where a script has these lines."""
        self.project.write({"build.sh": "".join(f"{line}\n" for line in lines)})
        return self.told()


@pytest.fixture
def scene(project: Project, upstream: Upstream, tmp_path: Path) -> Scene:
    made = Scene(project, Upstream.create(tmp_path / "core.git"), upstream)
    made.project.write({"build.sh": "true\n"})
    made.core_is(CORE)
    return made


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("sed -i 's/cuda/npu/' core/io.py", None),
        ("sed -i '5s/cuda/npu/' $X/core/io.py", None),
        ("sed -i 's/tpu/npu/' core/io.py", "gone"),
        ("sed -i 's/cuda/npu/' /site-packages/core/gone.py", "gone"),
        ("sed -i '4s/cuda/npu/' core/io.py", "line"),
        ("sed -i '4s/cuda/load/' core/io.py", "upstream"),
        ("sed -i 's/tpu(x)/return scale(x)/' core/layer.py", "upstream"),
        ("sed -i '4,5s/^/# /' core/io.py", "blind"),
        ("sed -i 's/a/\\U&/' core/io.py", "unknown"),
        ('sed -i "s/cuda/$X/" core/io.py', "unknown"),
        ("sed -i 's/cuda/npu/' $FILE", "unknown"),
        ("sed -i 's/cuda/npu/' /etc/apt/sources.list /root/other/setup.py", None),
        ("cd /w/core && sed -i \"s/'core'/'own'/\" setup.py", None),
        ("cd /w/core && sed -i 's/tpu/own/' setup.py", "gone"),
        ("find /x/core/core -name '*.py' -exec sed -i 's/torch/t/' {} \\;", None),
        ("find core/io.py | xargs sed -i 's/tpu/t/'", "gone"),
        ("sed -i 's/tpu/t/' $(find_core)/v1/deep/way.py", "gone"),
        ("sed -i 's/tpu/t/' $(find_core)/v1/other.py", None),
        ("curl -L https://example.com/1.diff | (cd /w/core && git apply)", "unknown"),
    ],
)
def test_a_sed_is_held_to_what_it_looks_for(scene: Scene, line: str, code: str | None) -> None:
    assert scene.shell("true", line) == ([(code, "build.sh:2")] if code else [])


def test_what_is_meant_may_be_said(scene: Scene) -> None:
    lines = "sed -i '4,5s/^/# /' core/io.py", "sed -i 's/load/get/' $FILE", "sed -i 's/a/b/' $Y"
    blind = {"anchor": "4,5s/^/", "text": "def load"}
    found = {"anchor": "s/load/get/", "path": "core/io.py", "hits": 2}
    ignored = {"anchor": "s/a/b/", "reason": "a file of our own"}
    scene.core_is(CORE, blind, found, ignored)
    assert scene.shell(*lines) == []
    scene.core_is(CORE, blind | {"text": "other"}, found | {"hits": 3}, {"anchor": "nothing"})
    assert [code for code, _ in scene.shell(*lines)] == ["line", "count", "unknown", "unused"]


def test_two_that_change_a_line_are_told(scene: Scene) -> None:
    one, other = "sed -i 's/cuda/npu/' core/io.py", "sed -i \"s/'cuda'/dev/\" core/io.py"
    scene.project.write({"docker/Dockerfile": f"FROM x\nRUN {one}\n"})
    assert scene.shell(one) == []  # both do one thing
    assert scene.shell(other) == [("twice", "docker/Dockerfile:2")] or scene.told() == [
        ("twice", "build.sh:1")
    ]
    scene.project.write({"docker/Dockerfile": "FROM x\n"})
    assert (
        scene.shell("sed -i 's/torch/tt/' core/io.py", "sed -i 's/tt.load/get/' core/io.py") == []
    )


def test_patches_that_are_applied(scene: Scene) -> None:
    after = CORE | {"core/io.py": CORE["core/io.py"].replace("cuda", "npu")}
    data = make_patch(CORE, after)
    scene.project.write({"docker/npu.patch": data})
    line = "cd /w/core && git apply /opt/npu.patch"
    assert scene.shell(line) == []
    scene.core_is(after)
    assert scene.told() == [("upstream", "build.sh:1")]
    scene.core_is({**after, "core/io.py": "gone\n"})
    assert scene.told() == [("gone", "build.sh:1")]
    assert scene.shell("cd /w/core", f"git apply <<'EOF'\n{data.decode()}EOF") == [
        ("gone", "build.sh:2")
    ]
    assert scene.shell("cd /w/core && git apply --check /opt/npu.patch") == []


def test_python_that_rewrites_is_followed(scene: Scene) -> None:
    scene.project.write({"helper.py": HELPER, "caller.py": CALLER})
    assert scene.told() == []
    moved = CORE["core/layer.py"].replace("scale(y)", "scale(y, 2)")
    scene.core_is({**CORE, "core/layer.py": moved, "core/io.py": "import torch\nimport torch\n"})
    assert scene.told() == [
        ("gone", "caller.py:8"),
        ("count", "caller.py:8"),
        ("gone", "caller.py:12"),
    ]
    assert scene.findings()[2]["what"].startswith("core/layer.py: `scale(y)`: what it looks for")
    scene.core_is({each: text for each, text in CORE.items() if each != "core/layer.py"})
    assert scene.told() == [("gone", "caller.py:12")]


def test_the_source_of_one_function_is_looked_at(scene: Scene) -> None:
    text = "import inspect\nimport core.layer as m\ns = inspect.getsource(m.Layer.other)\n"
    scene.project.write({"own.py": f"{text}exec(s.replace('norm(x)', 'y'))\n"})
    assert scene.told() == [("gone", "own.py:4")]
    scene.project.write({"own.py": f"{text}exec(s.replace('scale(x)', 'y'))\n"})
    assert scene.told() == []


def test_python_in_a_shell_script(scene: Scene) -> None:
    body = "from pathlib import Path\np = Path('core/io.py')\nt = p.read_text()"
    script = f"python3 - <<'EOF'\n{body}\np.write_text(t.replace('tpu', 'npu'))\nEOF"
    assert scene.shell("true", script) == [("gone", "build.sh:6")]


def test_a_component_may_rewrite_another(scene: Scene) -> None:
    pin = scene.carrier.commit({"ci/Dockerfile.npu": "RUN sed -i 's/tpu/x/' core/io.py\n"})
    scene.project.component("carrier", scene.carrier, pin)
    scene.project.component(
        "core", scene.core, scene.core.commit(CORE), rewrites=[{"from": "carrier"}]
    )
    assert scene.told() == [("gone", "carrier: ci/Dockerfile.npu:1")]
    scene.project.component("core", scene.core, CORE, rewrites=[{"from": "nobody"}])
    scene.project.run("check").ends(4, "nobody is not a component of this manifest")
    scene.project.component("core", scene.core, CORE, rewrites=[{"files": ["none/**"]}])
    assert [code for code, _ in scene.told()] == ["files"]


def test_a_patch_of_the_series_counts(scene: Scene) -> None:
    after = {"core/io.py": CORE["core/io.py"].replace("cuda", "npu")}
    patch = make_patch(CORE, CORE | after)
    pin = scene.core.commit(CORE)
    rewrites = [{"files": ["*.sh"]}]
    scene.project.component("core", scene.core, pin, {"npu.patch": patch}, rewrites=rewrites)
    assert scene.shell("sed -i '5s/cuda/npu/' core/io.py") == [("upstream", "build.sh:1")]


@pytest.mark.parametrize(
    ("name", "text", "place", "what"),
    [
        ("a.py", "open(x).read().replace('a'\n", "a.py:1", "cannot be parsed in line 1"),
        ("b.py", f"T = '''{'x' * 1_100_000}'''\n", "b.py:1", "has more than 1,000,000 bytes"),
        (
            "c.py",
            f"R = {[*range(50_000)]}\nfor a in R:\n    open(a).read().replace('a', a)\n",
            "c.py:3",
            "more than 40000 steps to follow",
        ),
        (
            "c.sh",
            "python3 - <<E\nopen(x).read().replace('a'\nE\n",
            "c.sh:2",
            "cannot be parsed in line 2",
        ),
        ("n.py", "open(x).read().replace('a', '\0')\n", "n.py:1", "cannot be parsed"),
        ("d.py", f"open('x').read().replace({'(' * 900}", "d.py:1", "cannot be parsed in line 1"),
        (
            "e.sh",
            f"sed -i '{'x' * 1_100_000}' core/io.py\n",
            "e.sh:1",
            "has more than 1,000,000 bytes",
        ),
    ],
)
def test_what_cannot_be_read_is_said(
    scene: Scene, name: str, text: str, place: str, what: str
) -> None:
    scene.project.write({name: text})
    began = monotonic()
    (found,) = scene.findings()
    assert (found["code"], found["where"], found["what"]) == ("rewrite-unread", place, what)
    assert monotonic() - began < 60


def test_loops_without_end_are_followed_once(scene: Scene) -> None:
    text = (
        "def f(n):\n    return f(n + 1)\n\n\ndef g(t):\n    while True:\n"
        "        t = t + t\n        f(t)\n        g(t)\n\n\n"
        "t = open('core/io.py').read()\nwhile True:\n    t = t.replace('tpu', 'npu')\ng('x')\n"
    )
    scene.project.write({"loop.py": text})
    assert scene.told() == [("gone", "loop.py:14")]


def test_drift_names_the_commit_that_moved_an_anchor(scene: Scene) -> None:
    scene.shell("sed -i '5s/cuda/npu/' core/io.py", "sed -i '4,5s/^/# /' core/io.py")
    scene.project.write({"helper.py": HELPER, "caller.py": CALLER})
    scene.core_is(CORE, {"anchor": "4,5s", "text": "def load"})
    harmless = CORE | {"core/io.py": CORE["core/io.py"] + "# end\n"}
    scene.core.commit(harmless)
    io = "# one more\n" + harmless["core/io.py"]
    shifted = scene.core.commit(CORE | {"core/io.py": io}, "Add a line")
    layer = CORE["core/layer.py"].replace("scale(y)", "scale(z)")
    gone = scene.core.commit(CORE | {"core/io.py": io, "core/layer.py": layer})
    (found,) = scene.project.run("drift", "-c", "core", "--json").json["components"]
    told = [(e["code"], e["where"], e["by"]["commit"]) for e in found["findings"]]
    assert told == [
        ("rewrite-line-upstream", "build.sh:1", shifted),
        ("rewrite-line-upstream", "build.sh:2", shifted),
        ("rewrite-gone-upstream", "caller.py:12", gone),
    ]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (r"re.sub(r'cu\w+', 'npu', t)", None),
        (r"re.sub(r'load\(path, .(\w+).', r'\1', t, count=1)", None),
        (r"re.sub(r'^tpu', 'npu', t)", "gone"),
        (r"re.sub(r'torch', 'tt', t, 1)", "count"),
        (r"re.sub(r'CUDA', 'npu', t, flags=re.I)", "unknown"),
        (r"re.sub(r'cuda', r'\9', t)", "unknown"),
        (r"re.sub(r'(cuda', 'npu', t)", "unknown"),
        (r"re.sub(pattern, 'npu', t)", "unknown"),
    ],
)
def test_a_pattern_in_python_is_held_to_what_it_finds(
    scene: Scene, call: str, code: str | None
) -> None:
    scene.project.write({"own.py": f"import re\nt = open('core/io.py').read()\nu = {call}\n"})
    assert scene.told() == ([(code, "own.py:3")] if code else [])


def test_steps_of_a_workflow_are_read(scene: Scene) -> None:
    text = (
        "on: push\njobs:\n  a:\n    steps:\n      - uses: x\n      - run: |\n"
        "          true\n          sed -i 's/tpu/npu/' core/io.py\n        name: sed -i s/x/y/ b\n"
        "      - run: |\n          python3 - <<END\n          t = open('core/io.py').read()\n"
        "          t = t.replace('tpu', '')\n          END\n"
        "      - name: b\n        run: sed -i 's/cuda/npu/' core/io.py\n"
        "      - run: sed -i 's/cuda/${{ matrix.to }}/' core/io.py\n"
        "      - run: sed -i 's/gpu/npu/' core/io.py\n"
    )
    scene.project.write({"ci/test.yml": text})
    pin = scene.core.commit(CORE)
    entry = {"files": ["ci/*.yml"]}
    scene.project.component("core", scene.core, pin, rewrites=[entry])
    assert scene.told() == [
        ("gone", "ci/test.yml:8"),
        ("gone", "ci/test.yml:13"),
        ("unknown", "ci/test.yml:17"),
        ("gone", "ci/test.yml:18"),
    ]
