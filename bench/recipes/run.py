"""`python -m bench.recipes.run --megatron CLONE`: a recipe against eight months of a real upstream.

The recipe that takes `@jit_fuser` off is run on commits of main and dev after the pin, sampled
evenly along first parents, and so is the patch that it makes at the pin, as text. Each result is
looked at by other means than the engine's: Python parses it, and the words are searched for. With
`--slime CLONE`, the published NPU patch is compared with what a recipe makes of the same tree.
`--write FILE` puts the figures into a page.
"""

from __future__ import annotations

import argparse
import ast
import re
import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.figures import put_between_marks
from bench.recipes.page import page
from bench.recipes.published import Comparison, compare_published
from bench.recipes.trial import Trial
from patchkit.extensions.recipes.recipe_file import load_recipe
from patchkit.extensions.recipes.run import Recipe
from patchkit.gitcmd.object_reader import ObjectReader, reading, write_objects
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.scratch import overlay
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.model.mail import parse_patch
from patchkit.model.objects import Base, CommitId
from patchkit.stack.build import SeriesPatch, build_stack
from patchkit.stack.generated import Rewritten, rewrite
from patchkit.stack.patch_files import Layout, canonical_diffs

HERE = Path(__file__).parent
PIN = "3714d81d418c9f1bca4594fc35f9e8289f652862"
_WORD = re.compile(rb"(?m)^[ \t]*@jit_fuser\b")


def main() -> None:
    """Measure, print, and write the page if asked for."""
    options = _arguments()
    repository = Repository(options.megatron.absolute())
    if not repository.exists:
        repository = Repository(options.megatron.absolute() / ".git", options.megatron.absolute())
    recipe = load_recipe(HERE / "jit-fuser-off.recipe.yml")
    lookout = load_recipe(HERE / "residual.rules.yml")
    with reading(repository) as reader:
        bench = _Bench(repository, reader, recipe, lookout)
        text = bench.as_text(options.pin)
        trials = [
            bench.run(branch, commit, text)
            for branch in ("main", "dev")
            for commit in sample(repository, options.pin, branch, options.commits)
        ]
    comparison = compare_published(repository, options.slime) if options.slime else None
    for trial in trials:
        print(line_of(trial))
    print_totals(trials, comparison)
    if options.write:
        put_between_marks(options.write, "recipes", page(trials, comparison))


def sample(repository: Repository, pin: str, branch: str, count: int) -> list[str]:
    """So many commits of a branch after the pin (after where it left it), the last included."""
    out = repository.git("rev-list", "--first-parent", "--reverse", branch, f"^{pin}", "--").out
    commits = out.decode().split()
    if len(commits) <= count:
        return commits
    return [commits[round((n + 1) * len(commits) / count) - 1] for n in range(count)]


@dataclass(frozen=True, slots=True)
class _Bench:
    """The clone, the recipe, and the rule that looks for what it leaves."""

    repository: Repository
    reader: ObjectReader
    recipe: Recipe
    lookout: Recipe

    def as_text(self, commit: str) -> SeriesPatch:
        """The recipe's patch at a commit, as it would be in a series that is pinned there."""
        before = read_base(self.repository, CommitId(commit)).tree
        made = rewrite(self.reader, before, self.recipe)
        with overlay(self.repository) as trial:
            write_objects(trial, made.objects)
            (diff,) = canonical_diffs(trial, [(before, made.tree_id)], Layout())
        return SeriesPatch("static.patch", parse_patch(diff, name="static.patch"), 1, "")

    def run(self, branch: str, commit: str, text: SeriesPatch) -> Trial:
        """The recipe on a commit of a branch, and the same change as text."""
        base = read_base(self.repository, CommitId(commit))
        made = rewrite(self.reader, base.tree, self.recipe)
        after = Overlay(self.reader, made.objects)
        files = TreeView(after, made.tree_id).contents(self.recipe.covers)
        sites = self.recipe.run(TreeView(self.reader, base.tree).contents(self.recipe.covers)).sites
        seen = TreeView(after, made.tree_id).contents(self.lookout.covers)
        left = self.lookout.run(seen).sites
        date = self.repository.git("log", "-1", "--format=%cs", commit).out.decode().strip()
        return Trial(
            branch,
            commit,
            date,
            len(sites),
            len(made.run.changed),
            tuple(_wrong(self.recipe, made, files)),
            self._missed(base, text),
            tuple(f"{site.place} {site.within}".strip() for site in left),
        )

    def _missed(self, base: Base, text: SeriesPatch) -> int | None:
        stack = build_stack(self.reader, base, [text])
        if not stack.clean:
            return None
        applied = TreeView(Overlay(self.reader, stack.objects), stack.tree).contents(
            self.recipe.covers
        )
        return sum(len(_WORD.findall(data)) for data in applied.values())


def _wrong(recipe: Recipe, made: Rewritten, files: Mapping[str, bytes]) -> Iterator[str]:
    yield from (finding.what for finding in made.run.findings)
    yield from (f"{path}: still has it" for path, data in files.items() if _WORD.search(data))
    if recipe.run(files).changed:
        yield "a second run changes something"
    for path in made.run.changed:
        try:
            ast.parse(files[path])
        except SyntaxError as error:
            yield f"{path}: {error}"


def line_of(trial: Trial) -> str:
    """A trial on one line."""
    text = "does not apply" if trial.text is None else f"applies, misses {trial.text}"
    verdict = "; ".join(trial.wrong) or "right"
    return (
        f"{trial.branch:4} {trial.commit[:12]} {trial.date}  {trial.sites:3} sites in "
        f"{trial.files:2} files: {verdict}; as text: {text}; beyond: {len(trial.beyond)}"
    )


def print_totals(trials: Sequence[Trial], comparison: Comparison | None) -> None:
    """Whether everything is as it should be, and what it took."""
    right = sum(not trial.wrong for trial in trials)
    print(
        f"{right} of {len(trials)} right; as text {sum(t.text is not None for t in trials)} apply"
    )
    if comparison is not None:
        print(f"published: {comparison}")
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"{used.ru_utime + used.ru_stime:.1f} s CPU")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure a recipe on Megatron-LM's history.")
    parser.add_argument("--megatron", type=Path, required=True, help="a clone with main and dev")
    parser.add_argument("--slime", type=Path, help="a clone, for its published NPU patch")
    parser.add_argument("--pin", default=PIN, help="where the patch as text is made")
    parser.add_argument("--commits", type=int, default=20, help="of each branch (20)")
    parser.add_argument("--write", type=Path, help="the page to write")
    return parser.parse_args()


if __name__ == "__main__":
    main()
