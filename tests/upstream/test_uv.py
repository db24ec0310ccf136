"""uv's configuration, as uv means it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from patchkit.upstream.index import UvOptions, uv_default, uv_files, uv_options

FILE = """
index-url = "https://old.example/simple"
extra-index-url = ["https://extra.example/simple"]
find-links = ["/srv/wheels"]
allow-insecure-host = ["internal.example:8080"]

[[index]]
name = "internal"
url = "https://internal.example/simple"

[[index]]
url = "https://main.example/simple"
default = true

[pip]
find-links = ["/srv/pip"]
"""

needs_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="reading TOML needs Python 3.11")


def test_variables() -> None:
    environment = {
        "UV_DEFAULT_INDEX": "main=https://main.example",
        "UV_INDEX_URL": "https://old.example",
        "UV_EXTRA_INDEX_URL": "https://one.example https://two.example",
        "UV_INDEX": "internal=https://three.example",
        "UV_FIND_LINKS": "/srv/a,/srv/b",
        "UV_INSECURE_HOST": "three.example",
    }

    assert uv_options(environment, []) == UvOptions(
        "https://main.example",
        ("https://three.example", "https://one.example", "https://two.example"),
        ("/srv/a", "/srv/b"),
        ("three.example",),
    )


@needs_toml
def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "config" / "uv" / "uv.toml"
    path.parent.mkdir(parents=True)
    path.write_text(FILE)
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "config")}

    found = uv_options(environment, uv_files(environment)[:1])

    assert found == UvOptions(
        "https://main.example/simple",
        ("https://internal.example/simple", "https://extra.example/simple"),
        ("/srv/wheels", "/srv/pip"),
        ("internal.example:8080",),
    )


@needs_toml
def test_a_file_in_the_home_folder(tmp_path: Path) -> None:
    path = tmp_path / ".config" / "uv" / "uv.toml"
    path.parent.mkdir(parents=True)
    path.write_text('index-url = "https://home.example"')

    assert uv_files({"HOME": str(tmp_path)})[0] == {"index-url": "https://home.example"}


@needs_toml
@pytest.mark.parametrize("text", ["not TOML", "index = 1", "pip = 1", "index = [1]", ""])
def test_a_file_that_says_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "uv.toml"
    path.write_text(text)

    assert uv_options({}, uv_files({"UV_CONFIG_FILE": str(path)})).first == ""


def test_variables_win_over_files() -> None:
    environment = {"UV_INDEX_URL": "https://variable.example"}

    assert uv_options(environment, [{"index-url": "https://f.example"}]).first == (
        "https://variable.example"
    )


def test_the_default_comes_from_the_help_text() -> None:
    text = """
      --index <INDEX>
          The indexes to use, in addition to the default index [env: UV_INDEX]
      --default-index <DEFAULT_INDEX>
          The default package index (by
          default: <https://index.example/simple>) [env: UV_DEFAULT_INDEX]
    """

    assert uv_default(text) == "https://index.example/simple"
    assert uv_default("--index <INDEX> nothing") == ""
