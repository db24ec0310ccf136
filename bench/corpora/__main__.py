"""The command: run what there are clones for, print what differs, write docs/evidence.md."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.corpora.applying import Found, judge_published
from bench.corpora.carriers import adopted_carriers, carriers_section
from bench.corpora.debian import debian_packages, debian_section
from bench.corpora.judging import as_git
from bench.corpora.page import slime_section, suite_section
from bench.corpora.published import Clone
from bench.corpora.recording import head
from bench.corpora.suites import git_scripts, patch_scripts, version
from bench.figures import put_between_marks

_SLIME = ("sglang", "megatron", "mindspeed")


def main() -> int:
    """Run; exits with 1 if a verdict differs from git's, 77 if there is no clone to run."""
    parser = argparse.ArgumentParser(prog="python -m bench.corpora", description=__doc__)
    parser.add_argument("--git", metavar="CLONE", help="of git: its scripts t41*")
    parser.add_argument("--gnu-patch", metavar="CLONE", help="of GNU patch")
    parser.add_argument("--slime", metavar="CLONE", help="of slime: every published patch")
    for name in _SLIME:
        parser.add_argument(f"--{name}", metavar="CLONE", action="append", help="for --slime")
    parser.add_argument("--debian", metavar="FOLDER", help="source packages, each with its .dsc")
    parser.add_argument("--carriers", metavar="FOLDER", help="their mirrors, as OWNER+NAME/repo")
    parser.add_argument("--match", default="t41[0-4]*.sh", help="which scripts of git (t41[0-4]*)")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the figures there")
    options = parser.parse_args()
    suites = {
        "git": options.git,
        "gnu-patch": options.gnu_patch,
        "slime": options.slime,
        "debian": options.debian,
        "carriers": options.carriers,
    }
    skipped = [name for name, clone in suites.items() if not clone]
    for name in skipped:
        _tell(f"skipped: {name} (--{name} runs it)")
    if len(skipped) == len(suites):
        return 77
    differ = 0
    with tempfile.TemporaryDirectory(prefix="patchkit-corpora-") as folder:
        if options.git:
            found = git_scripts(options.git, _below(folder, "git"), match=options.match, tell=_tell)
            text = suite_section(found, f"git ({head(options.git)})", version("git", "version"))
            differ += len(found.differ)
            _done("git", text, options.write)
        if options.gnu_patch:
            found = patch_scripts(options.gnu_patch, _below(folder, "patch"), tell=_tell)
            said = version("patch", "--version")
            differ += sum(not as_git(case, strip) for case, strip, _, _ in found.differ)
            text = suite_section(found, f"GNU patch ({head(options.gnu_patch)})", said)
            _done("patch", text, options.write)
        if options.slime:
            sets = _published(options, Path(folder))
            differ += len(sets.differ)
            _done("slime", slime_section(sets, head(options.slime)), options.write)
        if options.debian:
            below = _below(folder, "debian")
            packages = list(debian_packages(Path(options.debian).absolute(), below, tell=_tell))
            differ += sum(not each.agrees for each in packages) or not packages
            _done("debian", debian_section(packages), options.write)
        if options.carriers:
            below = _below(folder, "carriers")
            adopted = list(adopted_carriers(Path(options.carriers).absolute(), below, tell=_tell))
            differ += sum(row.moved > 0 or row.tree not in ("equal", "-") for row in adopted)
            _done("carriers", carriers_section(adopted), options.write)
    run = ", ".join(name for name in suites if name not in skipped)
    print(f"\n{run}: {differ} verdicts or trees are other than git's, or dpkg-source's")
    return 1 if differ else 0


def _published(options: argparse.Namespace, folder: Path) -> Found:
    slime = Clone(options.slime)
    clones = {name: [Clone(path) for path in getattr(options, name) or ()] for name in _SLIME}
    upstreams = {name: found[0] for name, found in clones.items() if found} | {"slime": slime}
    every = [slime, *(clone for found in clones.values() for clone in found)]
    return judge_published(slime, upstreams, every, folder, tell=_tell)


def _below(folder: str, name: str) -> Path:
    path = Path(folder, name)
    path.mkdir()
    return path


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _done(name: str, text: Sequence[str], page: Path | None) -> None:
    print("\n\n".join(text))
    if page is not None:
        put_between_marks(page, name, "\n\n".join(text))


if __name__ == "__main__":
    sys.exit(main())
