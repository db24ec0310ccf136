"""uv's configuration, as uv means it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from patchkit.upstream.index import uv_options

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
"""

needs_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="reading TOML needs Python 3.11")


def test_variables() -> None:
    environment = {
        "UV_DEFAULT_INDEX": "main=https://main.example",
        "UV_EXTRA_INDEX_URL": "https://one.example https://two.example",
        "UV_INDEX": "internal=https://three.example",
        "UV_FIND_LINKS": "/srv/a,/srv/b",
        "UV_INSECURE_HOST": "three.example",
    }

    assert uv_options(environment) == {
        "index-url": "https://main.example",
        "extra-index-url": "https://three.example https://one.example https://two.example",
        "find-links": "/srv/a /srv/b",
        "trusted-host": "three.example",
    }


@needs_toml
@pytest.mark.parametrize(
    ("folder", "variable"), [("config", "XDG_CONFIG_HOME"), (".config", "HOME")]
)
def test_a_file(tmp_path: Path, folder: str, variable: str) -> None:
    path = tmp_path / folder / "uv" / "uv.toml"
    path.parent.mkdir(parents=True)
    path.write_text(FILE)
    place = path.parent.parent if variable != "HOME" else tmp_path

    assert uv_options({variable: str(place)}) == {
        "index-url": "https://main.example/simple https://old.example/simple",
        "extra-index-url": "https://internal.example/simple https://extra.example/simple",
        "find-links": "/srv/wheels",
        "trusted-host": "internal.example:8080",
    }


@needs_toml
@pytest.mark.parametrize("text", ["not TOML", "index = 1", "find-links = 1", "index = [1]", ""])
def test_a_file_that_says_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "uv.toml"
    path.write_text(text)

    assert not any(uv_options({"UV_CONFIG_FILE": str(path)}).values())


@needs_toml
def test_variables_win_over_files(tmp_path: Path) -> None:
    path = tmp_path / "uv.toml"
    path.write_text('index-url = "https://f.example"')
    environment = {"UV_INDEX_URL": "https://variable.example", "UV_CONFIG_FILE": str(path)}

    assert uv_options(environment)["index-url"].split()[0] == "https://variable.example"
