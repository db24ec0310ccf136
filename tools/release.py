"""`python -m tools.release check TAG | notes`: is this tree ready to be released, and as what?

`check` names everything that is in the way, and exits with 1 then; `notes` prints the section of
CHANGELOG.md that is the version's.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tools.hatch_build import named_in

_ROOT = Path(__file__).parent.parent
_HEADING = re.compile(r"(?m)^## (.+)$")


def in_the_way(tag: str, root: Path = _ROOT) -> list[str]:
    """What has to be done before `tag` can be released; empty where all is done."""
    version, repository = named_in(root)
    found = []
    if tag != f"v{version}":
        found.append(f"patchkit/__init__.py: the version is {version}, the tag is {tag}")
    if "OWNER" in repository:
        found.append("patchkit/__init__.py: REPOSITORY is still to be filled in")
    sections = changes(root)
    if version not in sections:
        found.append(f"CHANGELOG.md: no section `## {version}`")
    if sections.get("Unreleased", "").strip():
        found.append("CHANGELOG.md: `## Unreleased` is not empty")
    return found


def changes(root: Path = _ROOT) -> dict[str, str]:
    """Version (the first word of a heading) -> its text in CHANGELOG.md."""
    _, *parts = _HEADING.split((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    return {
        head.split()[0]: text.strip("\n") + "\n"
        for head, text in zip(parts[::2], parts[1::2], strict=True)
    }


def main(words: list[str]) -> int:
    """Run the command line."""
    match words:
        case ["check", tag]:
            problems = in_the_way(tag)
            print("\n".join(problems) or f"{tag} is ready")
            return 1 if problems else 0
        case ["notes"]:
            version = named_in(_ROOT)[0]
            notes = changes().get(version)
            print(f"CHANGELOG.md: no section `## {version}`" if notes is None else notes.rstrip())
            return 1 if notes is None else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
