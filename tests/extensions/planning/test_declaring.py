"""Versions and requirements of components, from the files that their builds read."""

from __future__ import annotations

import sys

import pytest

from patchkit.extensions.planning.metadata import asked_for, declaration_of
from patchkit.extensions.planning.plan_report import Declaration
from patchkit.manifest.values import InstallStep

PYPROJECT = """
[project]
name = "Big_Trainer"
dependencies = ["engine==0.16.*", "torch>=2.6", "numpy"]
%s
"""
PACKAGE_INFO = """
import os
MAJOR = 0
MINOR = 16
PATCH = 0
PRE_RELEASE = 'rc0'
VERSION = (MAJOR, MINOR, PATCH, PRE_RELEASE)
__shortversion__ = '.'.join(map(str, VERSION[:3]))
__version__ = '.'.join(map(str, VERSION[:3])) + ''.join(VERSION[3:])
"""
needs_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="reads pyproject.toml")


def declared(files: dict[str, str], *steps: InstallStep) -> Declaration:
    def read(path: str) -> bytes | None:
        return files[path].encode() if path in files else None

    return declaration_of(read, steps, "component")


DYNAMIC = 'dynamic = ["version"]\n[tool.setuptools.dynamic]\nversion = {%s}'


@needs_toml
@pytest.mark.parametrize(
    ("told", "files"),
    [
        ('version = "1.2"', {}),
        (DYNAMIC % 'file = "V"', {"V": "1.2\n"}),
        (DYNAMIC % 'attr = "a.b.VERSION"', {"a/b.py": 'MAJOR = 1\nVERSION = f"{MAJOR}.2"\n'}),
        (DYNAMIC % 'attr = "m.info.__version__"', {"m/info.py": PACKAGE_INFO}),
        ('dynamic = ["version"]', {"setup.py": 'V = "1" + ".2"\nsetup(name="x", version=V)\n'}),
    ],
)
def test_a_version_wherever_the_build_finds_it(told: str, files: dict[str, str]) -> None:
    found = declared({"pyproject.toml": PYPROJECT % told, **files})
    version = "0.16.0rc0" if PACKAGE_INFO in files.values() else "1.2"
    assert (found.distribution, found.version) == ("big-trainer", version)
    needs = [(each.name, each.specifier) for each in found.needs]
    assert needs == [("engine", "==0.16.*"), ("torch", ">=2.6")]


@pytest.mark.parametrize(
    "code", ["V = open('v').read()\nsetup(version=V)", "setup(version=git())", "def (", "x = 1"]
)
def test_what_only_code_knows_is_unknown(code: str) -> None:
    found = declared({"setup.py": code})
    assert (found.distribution, found.version, found.needs) == ("component", "", ())


def test_the_folder_that_is_installed_counts() -> None:
    step = InstallStep("pip install -e .", "", "python")
    files = {
        "setup.py": "setup(name='other', version='9')",
        "python/setup.cfg": "[metadata]\nname = real\nversion = 2.0\n",
    }
    found = declared(files, step)
    assert (found.distribution, found.version) == ("real", "2.0")
    assert {"python/pyproject.toml", "python/setup.cfg"} <= set(
        asked_for(lambda path: None, [step])
    )


def test_a_release_says_it_itself() -> None:
    info = "Name: Engine\nVersion: 0.5.9\nRequires-Dist: transformers==4.57.1\n"
    found = declared({"PKG-INFO": info})
    assert (found.distribution, found.version) == ("engine", "0.5.9")
    assert [(n.name, n.specifier, n.file) for n in found.needs] == [
        ("transformers", "==4.57.1", "PKG-INFO")
    ]
