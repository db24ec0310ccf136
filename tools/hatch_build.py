"""For hatchling while it builds: links that hold outside the repository, and generated pages.

Loaded by its path, also where nothing but hatchling is installed: man pages and completion are in
the wheels, and docs/reference/ in the sdists, that are built where patchkit runs (`make dist`).
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_ROOT = Path(__file__).parent.parent
#: Where each shell looks for completions below the prefix of an installation.
_COMPLETIONS = {
    "bash": "share/bash-completion/completions/patchkit",
    "zsh": "share/zsh/site-functions/_patchkit",
    "fish": "share/fish/vendor_completions.d/patchkit.fish",
}
_LINK = re.compile(r"(!?)(\[[^][]*(?:\[[^][]*\]\([^)]*\))?[^][]*\])\(([^)\s]+)\)")


class ReadmeAndUrls(MetadataHookInterface):
    """The README as the package index shows it, and the project's addresses."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in `readme` and `urls`."""
        version, repository = named_in(Path(self.root))
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = absolute_links(text, repository, f"v{version}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = urls(repository, f"v{version}")


class ManualPages(BuildHookInterface):  # type: ignore[type-arg]
    """In a wheel man pages and completion at their places, in an sdist the reference's pages."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them to a wheel or an sdist; other builds have no places for them."""
        self._folder = ""
        if version != "standard":
            return
        wheel = self.target_name == "wheel"
        try:
            files = {**manual(Path(self.root)), **completions()} if wheel else reference()
        except ImportError as error:
            self.app.display_warning(f"no generated pages, no completion: {error}")
            return
        self._folder = tempfile.mkdtemp(prefix="patchkit-man-")
        for number, (place, text) in enumerate(files.items()):
            path = Path(self._folder) / str(number)
            path.write_text(text, encoding="utf-8")
            build_data["shared_data" if wheel else "force_include"][str(path)] = place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the build needed."""
        if self._folder:
            shutil.rmtree(self._folder)


def named_in(root: Path) -> tuple[str, str]:
    """(version, repository's address) that `patchkit/__init__.py` names."""
    text = (root / "patchkit/__init__.py").read_text(encoding="utf-8")
    found = [
        re.search(rf'(?m)^{name} = "([^"]+)"$', text) for name in ("__version__", "REPOSITORY")
    ]
    version, repository = (each[1] if each else "" for each in found)
    assert version and repository, "patchkit/__init__.py names no version or repository"
    return version, repository


def urls(repository: str, tag: str) -> dict[str, str]:
    """What the package index shows beside the description."""
    return {
        "Repository": repository,
        "Documentation": f"{repository}/blob/{tag}/docs/README.md",
        "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
        "Security": f"{repository}/security/policy",
    }


def absolute_links(text: str, repository: str, ref: str, folder: str = "") -> str:
    """Markdown in which links relative to `folder` of the repository lead to its files at `ref`.

    Images lead to their bytes. Addresses and links within the page stay; code blocks too.
    """

    def link(found: re.Match[str]) -> str:
        image, label, target = found.groups()
        label = _LINK.sub(link, label[1:-1])
        if not re.match(r"[a-z]+:|#", target):
            kind = "raw" if image else "blob"
            target = f"{repository}/{kind}/{ref}/{_joined(folder, target)}"
        return f"{image}[{label}]({target})"

    parts = re.split(r"(?ms)(^```.*?^```$)", text)
    parts[::2] = [_LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts)


def _joined(folder: str, target: str) -> str:
    """`target` as seen from `folder`, with its `..` taken away."""
    parts: list[str] = []
    for part in [*folder.split("/"), *target.split("/")]:
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def manual(root: Path = _ROOT) -> dict[str, str]:
    """Place -> text of each man page, made from the help pages."""
    from patchkit.report.json import one_word  # noqa: PLC0415
    from tools.help_pages import all_pages  # noqa: PLC0415

    version, _ = named_in(root)
    pages = {one_word(f"patchkit {name}".strip()): page for name, page in all_pages().items()}
    return {
        f"share/man/man1/{title}.1": man_page(
            page, title, version, [*pages][1:] if title == "patchkit" else ["patchkit"]
        )
        for title, page in pages.items()
    }


def reference() -> dict[str, str]:
    """Place -> text of each page of docs/reference/ that is not committed."""
    from tools.reference import reference_pages  # noqa: PLC0415

    return {path.as_posix(): text for path, text in reference_pages().items()}


def completions() -> dict[str, str]:
    """Place -> text of each shell's script."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # noqa: PLC0415

    return {
        place: get_completion_script(
            prog_name="patchkit", complete_var="_PATCHKIT_COMPLETE", shell=shell
        )
        + "\n"
        for shell, place in _COMPLETIONS.items()
    }


#: Headings of a help page that a man page calls otherwise.
_SECTIONS = {"Exit codes": "EXIT STATUS"}


def man_page(page: str, title: str, version: str, see: list[str]) -> str:
    """A help page as a man page (roff with the man macros); `see` are related ones."""
    usage, *blocks = page.rstrip("\n").split("\n\n")
    summary = " ".join(blocks[0].split("\n")).removesuffix(".")
    lines = [
        f'.TH "{title.upper()}" "1" "" "patchkit {version}" "patchkit manual"',
        '.\\" made from the help pages by tools/hatch_build.py',
        ".nh",
        ".SH NAME",
        f"{_roff(title)} \\- {_roff(summary[:1].lower() + summary[1:])}",
        ".SH SYNOPSIS",
        f".B {_roff(usage.removeprefix('Usage: '))}",
        ".SH DESCRIPTION",
    ]
    described = False
    for block in blocks:
        heading, *rows = block.split("\n")
        if (
            heading.endswith(":")
            and not heading.startswith(" ")
            and rows
            and rows[0].startswith("  ")
        ):
            name = heading.removesuffix(":")
            lines += [f".SH {_roff(_SECTIONS.get(name, name.upper()))}", *_rows(rows)]
        elif block.startswith(" "):
            lines += [".PP", ".nf", *map(_roff, block.split("\n")), ".fi"]
        else:
            lines += [".PP"] * described + [_roff(line) for line in block.split("\n")]
            described = True
    lines += [
        ".SH SEE ALSO",
        ",\n".join(f".BR {_roff(each)} (1)" for each in sorted(see)).replace(",\n", " ,\n"),
    ]
    return "\n".join(lines) + "\n"


def _rows(rows: list[str]) -> Iterator[str]:
    """Labels with what they mean. A label is indented by 2, or by 6 if it is a long option."""
    for row in rows:
        text = row.strip()
        indent = len(row) - len(row.lstrip())
        if indent != 2 and not (indent == 6 and text.startswith("--")):
            yield _roff(text)
            continue
        label, _, meaning = text.partition("  ")
        yield ".TP"
        yield f".B {_roff(label)}"
        if meaning:
            yield _roff(meaning.strip())


def _roff(text: str) -> str:
    """A line of text that roff takes for nothing else."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return f"\\&{text}" if text.startswith(".") else text
