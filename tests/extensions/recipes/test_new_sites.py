"""Since when a file has what rules name: halving finds what going through all versions finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from patchkit.extensions.recipes.new_sites import SiteHistory
from patchkit.extensions.recipes.recipe_file import load_recipe
from patchkit.extensions.recipes.residual_sites import Fingerprint, Scanner, fingerprint
from patchkit.gitcmd.first_parent import Commit, Landing
from patchkit.model.objects import FILE_MODE, CommitId, TreeEntry

RULES = """\
version: 1
description: What is for CUDA
rules:
  - id: device
    language: python
    files: ["**/*.py"]
    rule: {kind: string, regex: "^[\\"']cuda(:.*)?[\\"']$"}
  - id: compiled
    language: python
    files: ["**/*.py"]
    rule: {pattern: "torch.compile($$$)"}
"""
BODIES = (
    '    move("cuda")\n',
    '    move("cuda")\n    move("cuda")\n',
    "    # move('cuda')\n    pass\n",
    "    move('cuda:0', 'cuda')\n",
    '    """\n    move("cuda")\n    """\n',
    "    return torch.compile(\n        f,\n        dynamic=True,\n    )\n",
    "    pass\n",
)


def a_file(bodies: Sequence[str], names: Sequence[str]) -> bytes:
    """Functions in a class and beside it."""
    blocks = [f"def {name}():\n{body}\n" for name, body in zip(names, bodies, strict=True)]
    inside = blocks[0].replace("\n", "\n    ").rstrip(" ")
    return f"class Engine:\n    {inside}\n{''.join(blocks[1:])}".encode()


def versions(random: Random, count: int) -> list[bytes | None]:
    """A file as it comes to be, now and then without one of its functions, or gone."""
    bodies, names = [random.choice(BODIES) for _ in range(4)], ["one", "two", "three", "four"]
    found: list[bytes | None] = []
    for _ in range(count):
        if random.random() < 0.4:
            bodies[random.randrange(4)] = random.choice(BODIES)
        if random.random() < 0.1:
            names[random.randrange(4)] = random.choice(("one", "two", "five"))
        lead = b"# %d\n" % random.randrange(99)
        found.append(None if random.random() < 0.05 else lead + a_file(bodies, names))
    return [*found, a_file(bodies, names)]


@pytest.mark.parametrize("seed", range(40))
def test_halving_finds_what_going_through_all_finds(seed: int, tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(RULES)
    rules = load_recipe(tmp_path / "rules.yml", "rules.yml").all_rules
    scanner, random = Scanner(rules), Random(seed)
    texts = versions(random, 30)
    contents = {str(n): text for n, text in enumerate(texts) if text is not None}
    line = [_landing(n, text) for n, text in enumerate(texts)]
    last = [fingerprint(each) for each in scanner.sites("a.py", contents[str(len(texts) - 1)])]
    known = Counter(random.sample(last, min(1, len(last))))
    sites = {each for each in last if last.count(each) > known[each]}

    file = SiteHistory("a.py", line, contents, sites=sites, known=known, scanner=scanner)

    assert file.brought() == _one_by_one(line, contents, sites, known, scanner)


def _landing(number: int, text: bytes | None) -> Landing:
    entry = TreeEntry(FILE_MODE, str(number)) if text is not None else None
    return Landing(Commit(CommitId(f"c{number}"), "", "", ""), CommitId(""), {"a.py": entry})


def _one_by_one(
    line: Sequence[Landing],
    contents: dict[str, bytes],
    sites: set[Fingerprint],
    known: Counter[Fingerprint],
    scanner: Scanner,
) -> dict[Fingerprint, str]:
    by, left = dict.fromkeys(sites, ""), set(sites)
    for landing in reversed(line):
        entry = landing.touches["a.py"]
        data = contents[entry.oid] if entry is not None else b""
        there = Counter(map(fingerprint, scanner.sites("a.py", data)))
        left = {each for each in left if there[each] > known[each]}
        if not left:
            break
        by |= dict.fromkeys(left, landing.commit.id)
    return by
