"""The user's own configuration of pip and uv, as they mean it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.errors import SurroundingsError
from patchkit.upstream.index import (
    configuration,
    default_index,
    index_configuration,
    pip_options,
)
from tests.support.projects import write_files

# Word for word what `pip config list` prints.
LISTING = """\
:env:.find-links='/srv/wheels https://h.example/links.html'
:env:.timeout='7'
download.index-url='https://download.example/simple'
freeze.timeout='10'
global.cert='/etc/ssl/ca.pem'
global.extra-index-url='\\nhttps://one.example/simple\\nhttps://two.example/simple'
global.find-links='/elsewhere'
global.index-url='https://global.example/simple'
install.trusted-host='one.example two.example:8080'
"""


def test_what_they_come_to() -> None:
    options = pip_options(LISTING, {})

    found = configuration(options, {}, options["index-url"])

    assert found.indexes == (
        "https://download.example/simple",
        "https://one.example/simple",
        "https://two.example/simple",
    )
    assert found.find_links == ("/srv/wheels", "https://h.example/links.html")
    assert found.access.certificates == "/etc/ssl/ca.pem"
    assert found.access.trusted == {"one.example", "two.example:8080"}
    assert found.access.timeout == 7


def test_no_index_leaves_plain_files() -> None:
    options = pip_options("global.no-index='true'\nglobal.find-links='/srv'\n", {})

    found = configuration(options, {}, "https://one.example")

    assert (found.indexes, found.find_links) == ((), ("/srv",))


def test_variables_of_pip_without_pip() -> None:
    options = pip_options("", {"PIP_INDEX_URL": "https://one.example", "PIPX": "no", "HOME": "/"})

    assert options == {"index-url": "https://one.example"}


def test_uv_adds_to_pip() -> None:
    uv = {
        "index-url": "https://first.example",
        "extra-index-url": "https://two.example",
        "find-links": "/srv/b",
        "trusted-host": "h.example",
    }
    options = {"extra-index-url": "https://one.example", "find-links": "/srv/a"}

    found = configuration(options, uv, uv["index-url"])

    assert found.indexes == (
        "https://first.example",
        "https://one.example",
        "https://two.example",
    )
    assert found.find_links == ("/srv/a", "/srv/b")
    assert found.access.trusted == {"h.example"}


def test_neither_pip_nor_uv() -> None:
    with pytest.raises(SurroundingsError) as caught:
        configuration({}, {}, "")

    assert "PIP_INDEX_URL" in caught.value.problems[0].hint


@pytest.mark.parametrize(
    "text",
    [
        "  -i, --index-url <url>       Base URL of the Python Package Index (default\n"
        "                              https://index.example/simple). This should point\n",
        "--index-url <url> Base URL of the index (default: https://index.example/simple).",
        "  --index <INDEX>\n      The indexes to use, in addition to the default index\n"
        "  --default-index <DEFAULT_INDEX>\n      The default package index (by\n"
        "      default: <https://index.example/simple>) [env: UV_DEFAULT_INDEX]\n",
    ],
)
def test_the_default_comes_from_the_help_text(text: str) -> None:
    assert default_index(text) == "https://index.example/simple"


def test_a_help_text_that_tells_nothing() -> None:
    assert default_index("--index-url <url> Base URL.") == ""
    assert default_index("--index <INDEX> in addition to the default: https://no.example") == ""


@pytest.mark.slow
def test_the_pip_of_this_python_tells_its_default() -> None:
    pip = [sys.executable, "-m", "pip", "install", "--help"]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this Python has no pip")

    assert default_index(done.stdout).startswith("https://")


@pytest.mark.slow
def test_pip_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "pip.conf"
    own.write_text("[global]\nindex-url = https://one.example/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(own))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://two.example/simple")

    found = index_configuration()

    assert {"https://one.example/simple", "https://two.example/simple"} <= {*found.indexes}


@pytest.mark.slow
def test_no_folder_called_pip_is_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    write_files(tmp_path, {"pip/__init__.py": "", "pip/__main__.py": program})
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "https://one.example/simple")

    index_configuration()

    assert not (tmp_path / "ran").exists()
