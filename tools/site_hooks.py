"""For mkdocs while it makes the site: pages without what only tests read, links that hold.

Loaded by its path (`hooks` in mkdocs.yml).
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from patchkit import REPOSITORY, __version__

_ROOT = Path(__file__).parent.parent
_SETUP = re.compile(r"(?ms)^<!-- setup\n.*?^-->\n+")
_OUTWARD = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")
_FOLDER = re.compile(r"\]\(([a-z]+)\)")


def on_config(config: Any) -> Any:
    """The repository's address, from the one place that has it."""
    config["repo_url"] = REPOSITORY
    config["repo_name"] = "/".join(REPOSITORY.rsplit("/", 2)[1:])
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page as readers of the site get it."""
    return for_site(markdown, page.file.src_uri, REPOSITORY, f"v{__version__}")


def for_site(markdown: str, path: str, repository: str, ref: str) -> str:
    """A page of docs/ (`path` in there) for the site.

    What tests run unseen is left out, and links to files outside docs/ lead to the repository.
    """
    folder = posixpath.dirname(f"docs/{path}")

    def outward(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found[1]))
        if target.startswith("docs/"):
            return found[0]
        return f"]({repository}/blob/{ref}/{target}{found[2] or ''})"

    def folder_link(found: re.Match[str]) -> str:
        """A folder of docs/ is no page; the repository shows it."""
        target = posixpath.join(folder, found[1])
        if not (_ROOT / target).is_dir():
            return found[0]
        return f"]({repository}/tree/{ref}/{target})"

    return _FOLDER.sub(folder_link, _OUTWARD.sub(outward, _SETUP.sub("", markdown)))
