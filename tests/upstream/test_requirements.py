"""What components ask for, from the files in which projects say it."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import pytest

from patchkit.manifest.values import InstallStep
from patchkit.upstream.requirements import (
    DeclaredRequirements,
    followed,
    named_by_steps,
    read_requirements,
)

EDITABLE = (InstallStep("pip install -e ."),)
PYPROJECT = """\
[project]
name = "x"
requires-python = ">=3.10"
dependencies = ["torch==2.9.1", "numpy<2; python_version < '3.13'"]
[project.optional-dependencies]
npu = ["torch_npu==2.8.0"]
cuda = ["flash-attn"]
"""

needs_tomllib = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="pyproject.toml is read with Python 3.11"
)


def requirements(files: Mapping[str, str], *steps: InstallStep) -> DeclaredRequirements:
    return read_requirements(lambda path: files[path].encode() if path in files else None, steps)


def lines(found: DeclaredRequirements) -> list[str]:
    return [str(each.requirement) for each in found.requirements]


@needs_tomllib
def test_pyproject() -> None:
    found = requirements({"pyproject.toml": PYPROJECT}, *EDITABLE)
    assert lines(found) == ["torch==2.9.1", 'numpy<2; python_version < "3.13"']
    assert (found.python, found.python_file) == (">=3.10", "pyproject.toml")
    assert all(each.enforced and each.certain for each in found.requirements)


@needs_tomllib
@pytest.mark.parametrize(
    "run",
    ["pip install -e '.[npu]'", 'pip install ".[npu]"', "X=1 pip install -v -e .[npu] && make"],
)
def test_extras_that_a_step_names(run: str) -> None:
    found = requirements({"python/pyproject.toml": PYPROJECT}, InstallStep(run, directory="python"))
    assert "torch_npu==2.8.0" in lines(found)
    assert "flash-attn" not in lines(found)
    assert {each.file for each in found.requirements} == {"python/pyproject.toml"}


@needs_tomllib
def test_an_extra_takes_others_of_its_project_along() -> None:
    text = PYPROJECT + 'all = ["X[npu, mesh]"]\nmesh = ["six", "x[all]", "y[all]"]\n'
    found = requirements({"pyproject.toml": text}, InstallStep("pip install -e .[all]"))
    assert lines(found)[2:] == ["torch_npu==2.8.0", "six", "y[all]"]
    text = "[metadata]\nname = x\n[options]\ninstall_requires = six\n[options.extras_require]\n"
    text += "b = ray\na = x[b]\n"
    assert lines(requirements({"setup.cfg": text}, InstallStep("pip install .[a]"))) == [
        "six",
        "ray",
    ]


@needs_tomllib
@pytest.mark.parametrize(
    "steps", [(), (InstallStep("make"),), (InstallStep("pip install --no-deps -e ."),)]
)
def test_what_no_step_enforces(steps: tuple[InstallStep, ...]) -> None:
    found = requirements({"pyproject.toml": PYPROJECT}, *steps)
    assert lines(found)
    assert not any(each.enforced for each in found.requirements)


@needs_tomllib
def test_dynamic_requirements_are_those_of_some_build() -> None:
    project = '[project]\nname = "x"\ndynamic = ["dependencies"]\n'
    info = (
        "Metadata-Version: 2.1\nName: x\nRequires-Python: >=3.9\nRequires-Dist: torch==2.9.0\n"
        'Requires-Dist: ray>=2; extra == "ray"\n'
        'Requires-Dist: b; (sys_platform == "linux") and extra == "b"\n'
    )
    found = requirements(
        {"pyproject.toml": project, "PKG-INFO": info}, InstallStep("pip install .[b]")
    )
    assert lines(found) == ["torch==2.9.0", 'b; sys_platform == "linux"']
    assert not any(each.certain for each in found.requirements)
    assert found.python == ">=3.9"


def test_setup_cfg() -> None:
    text = (
        "[options]\npython_requires = >=3.8\n"
        "install_requires =\n    torch==2.5.1\n    # no\n    six\n"
        "[options.extras_require]\nx = ray\n"
    )
    found = requirements({"setup.cfg": text}, InstallStep("pip install .[x]"))
    assert lines(found) == ["torch==2.5.1", "six", "ray"]
    assert found.python == ">=3.8"


@pytest.mark.parametrize(
    "text",
    [
        "from setuptools import setup\nsetup(install_requires=['torch==2.5.1'])\n",
        "import setuptools\nWANTED = ['torch==2.5.1']\nsetuptools.setup(install_requires=WANTED)\n",
        "TORCH = '2.5.1'\nsetup(install_requires=[] + [f'torch=={TORCH}'])\n",
        "MORE = dict(install_requires=('torch==2.5.1',))\nsetup(**MORE)\n",
    ],
)
def test_setup_py_that_says_it(text: str) -> None:
    assert lines(requirements({"setup.py": text}, *EDITABLE)) == ["torch==2.5.1"]


CODE = (
    "from setuptools import setup\nsetup(install_requires=open('requirements.txt').readlines())\n"
)


@pytest.mark.parametrize(
    "text",
    [
        "setup(install_requires=['torch', read('more')])\n",
        "WANTED = ['six']\n"
        + "WANTED = WANTED + WANTED\n" * 20
        + "setup(install_requires=WANTED)\n",
    ],
)
def test_requirements_of_which_some_are_made_by_code_are_not_half_read(text: str) -> None:
    found = requirements({"setup.py": text}, *EDITABLE)
    assert lines(found) == []
    assert found.unread == ("setup.py: its requirements are computed by code",)


def test_setup_py_nested_without_end() -> None:
    found = requirements({"setup.py": "X = " + "('a' + " * 800 + "''" + ")" * 800}, *EDITABLE)
    assert lines(found) == []


def test_setup_py_that_runs_code() -> None:
    found = requirements({"setup.py": CODE}, *EDITABLE)
    assert found.unread == ("setup.py: its requirements are computed by code",)
    more = requirements({"setup.py": CODE, "requirements.txt": "torch==2.5.1\n"}, *EDITABLE)
    assert lines(more) == ["torch==2.5.1"]
    assert not more.requirements[0].certain
    assert requirements({"setup.py": CODE}, InstallStep("pip install --no-deps .")).unread == ()


def test_requirement_files_that_a_step_names() -> None:
    text = "# ours\ntorch==2.5.1  # why\n-r other.txt\n\ngit+https://x/y.git\n"
    text += "ray[default]>=2 \\\n  --hash=sha256:0\n"
    found = requirements(
        {"req/npu.txt": text}, InstallStep("pip install -r npu.txt", directory="req")
    )
    assert lines(found) == ["torch==2.5.1", "ray[default]>=2"]
    missing = requirements({}, InstallStep("pip install -r ../../secret.txt"))
    assert missing.unread == ("../../secret.txt: not in the component",)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("setup.py", "def f(:\n", "not Python that can be read"),
        ("setup.cfg", "no section\n", "not readable"),
        ("setup.cfg", "[options]\ninstall_requires =\n    ===\n", "is not a valid requirement"),
        pytest.param("pyproject.toml", "[project\n", "not TOML", marks=needs_tomllib),
    ],
)
def test_files_that_cannot_be_read(name: str, text: str, message: str) -> None:
    (told,) = requirements({name: text}, *EDITABLE).unread
    assert told.startswith(f"{name}: ")
    assert message in told


def test_what_steps_name_and_follow() -> None:
    steps = (
        InstallStep("pip install -e '.[npu]' && pip install ./x.whl", directory="python"),
        InstallStep("pip install 'peft>=0.15' ninja -r more.txt\npip install --no-deps other ."),
    )
    assert followed(steps) == [("python", "[npu]")]
    assert [*named_by_steps(steps)] == ["peft>=0.15", "ninja"]
    assert [*named_by_steps(steps, alone=True)] == ["other"]
