"""For mkdocs while it makes the site: generated pages, links that hold, no text for tests only.

Loaded by its path (`hooks` in mkdocs.yml).
"""

from __future__ import annotations

import html
import posixpath
import re
from pathlib import Path
from typing import Any

from patchkit import REPOSITORY, __version__
from tools.reference import reference_pages

_ROOT = Path(__file__).parent.parent
_SETUP = re.compile(r"(?ms)^<!-- setup\n.*?^-->\n+")
_OUTWARD = re.compile(r"\[([^\[\]]*)\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")
_FOLDER = re.compile(r"\[([^\[\]]*)\]\(([a-z]+)\)")
_FROM_ROOT = re.compile(r"\]\((?!https?:|#)(?:docs/)?([^)]+)\)")
_CODE = re.compile(r"(?s)<code>(<span class=\"gp\">.*?)</code></pre>")
_TAG = re.compile(r"<[^>]+>")


def on_config(config: Any) -> Any:
    """The repository's address, from the one place that has it, once it is published."""
    if _is_published(REPOSITORY):
        config["repo_url"] = REPOSITORY
        config["repo_name"] = "/".join(REPOSITORY.rsplit("/", 2)[1:])
    return config


def on_files(files: Any, config: Any) -> Any:
    """The pages of docs/, and the generated ones of docs/reference/."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - tests import this without mkdocs

    for path, text in reference_pages().items():
        name = path.relative_to("docs").as_posix()
        left = files.get_file_from_path(name)
        if left is not None:  # an sdist has them as files
            files.remove(left)
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page as readers of the site get it."""
    path = page.file.src_uri
    if path == "README.md":
        markdown = home((_ROOT / "README.md").read_text(encoding="utf-8"), markdown)
    return for_site(markdown, path, REPOSITORY, f"v{__version__}")


def on_page_content(content: str, **_: Any) -> str:
    """The page's HTML, where the copy button of a console block takes its commands only."""
    return _CODE.sub(_copied_as_commands, content)


def home(readme: str, index: str) -> str:
    """The first page: the repository's README up to the stacks, then the index of docs/."""
    first = readme.partition("\n## What is in the box\n")[0]

    def from_docs(link: re.Match[str]) -> str:
        inside = link[0].startswith("](docs/")
        return f"]({'' if inside else '../'}{link[1].removeprefix('README.md')})"

    start = index.index("\n## How to\n")
    return _FROM_ROOT.sub(from_docs, first) + index[start:]


def commands(block: str) -> str:
    """The commands of a console block, without prompts and outputs."""
    taken: list[str] = []
    in_command = False
    for line in block.split("\n"):
        in_command = line.startswith("$ ") or (in_command and f"{line} ".startswith("> "))
        if in_command:
            taken.append(line[2:])
    return "\n".join(taken)


def for_site(markdown: str, path: str, repository: str, ref: str) -> str:
    """A page of docs/ (`path` in there) for the site.

    What tests run unseen is left out. Links to files outside docs/, and to its folders, lead to the
    repository; before it is published they are plain words.
    """
    folder = posixpath.dirname(f"docs/{path}")

    def in_repository(label: str, kind: str, target: str) -> str:
        address = f"{repository}/{kind}/{ref}/{target}"
        return f"[{label}]({address})" if _is_published(repository) else label

    def outward(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        if target.startswith("docs/"):
            return link[0]
        return in_repository(link[1], "blob", f"{target}{link[3] or ''}")

    def folder_link(link: re.Match[str]) -> str:
        target = posixpath.join(folder, link[2])
        if not (_ROOT / target).is_dir():
            return link[0]
        return in_repository(link[1], "tree", target)

    return _FOLDER.sub(folder_link, _OUTWARD.sub(outward, _SETUP.sub("", markdown)))


def _copied_as_commands(block: re.Match[str]) -> str:
    text = commands(html.unescape(_TAG.sub("", block[1])))
    return f'<code data-copy="{html.escape(text)}">{block[1]}</code></pre>'


def _is_published(repository: str) -> bool:
    """Whether the repository's owner has been filled in (RELEASING.md)."""
    return "/OWNER/" not in repository
