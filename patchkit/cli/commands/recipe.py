"""`patchkit recipe test`, `recipe try`, `recipe new`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.options import (
    CacheOption,
    DryRunOption,
    JsonOption,
    ManifestOption,
    OfflineOption,
    OneComponentOption,
    QuietOption,
)
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from patchkit.ops.recipe import RecipeStart

RecipeArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The recipe.")]
_PATCHES = Path("patches")


@command(
    examples=[
        ("patchkit recipe test", "every recipe of patches/"),
        ("patchkit recipe test patches/megatron-lm/jit-fuser-off.recipe.yml", "one of them"),
    ],
    exits={
        ExitCode.OK: "every example is right",
        ExitCode.FINDING: "a rule makes something else of an example",
        ExitCode.BAD_INPUT: "a recipe cannot be read, or ast-grep does not take a rule",
    },
    result="patchkit.ops.recipe:RecipeTestReport",
)
def test(
    *,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="A recipe. Default: all below patches/."),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Run the examples that recipes hold.

    An example is a piece of code before a rule is run and after (`examples:` of a rule). Nothing
    but the recipe is read: no manifest, no upstream.
    """
    from patchkit.cli.recipe_output import render_tests
    from patchkit.ops.recipe import check_recipes, find_recipes

    terminal = Terminal(quiet=quiet, json=json)
    paths = tuple(files or ()) or find_recipes(_PATCHES)
    if not paths:
        raise UsageError("no recipe in ./patches", hint="name a file")
    report = check_recipes(paths)
    return terminal.report("recipe test", report, report.exit_code, render_tests)


@command(
    examples=[
        ("patchkit recipe try new.recipe.yml -m qwen3-vl-npu -c slime", "counts, and the diff"),
        ("patchkit recipe try new.recipe.yml -m qwen3-vl-npu -c slime --sites", "each site"),
    ],
    exits={
        ExitCode.OK: "the recipe does what it says",
        ExitCode.FINDING: "a count is off, a rule is dead, or the result must not be used",
        ExitCode.BAD_INPUT: "the recipe or a patch before it cannot be read, or does not apply",
        ExitCode.ENVIRONMENT: "an upstream could not be fetched",
    },
    result="patchkit.ops.recipe:RecipeTrial",
)
def try_(
    file: RecipeArgument,
    *,
    manifest: ManifestOption = None,
    component: OneComponentOption = None,
    sites: Annotated[
        bool, typer.Option("--sites", help="List the sites in place of the diff.")
    ] = False,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Show what a recipe would do to a component.

    It runs where its patch stands in the series, or at the end if the series has no such patch.
    Nothing is written.
    """
    from patchkit.cli.locate import cache_folder, open_manifest, pick_component
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.cli.recipe_output import render_trial
    from patchkit.ops.recipe import try_recipe
    from patchkit.upstream.store import Store

    terminal = Terminal(quiet=quiet, json=json)
    chosen = open_manifest(manifest)
    picked = pick_component(chosen, component)
    store = Store(cache_folder(cache), offline=offline)
    with showing_progress(terminal) as progress:
        trial = try_recipe(chosen, picked, file, store, progress)
    return terminal.report("recipe try", trial, trial.exit_code, render_trial(sites=sites))


@command(
    examples=[
        (
            "patchkit recipe new jit-off -c megatron-lm --pattern '@jit_fuser' --remove",
            "delete decorators",
        ),
        (
            "patchkit recipe new hccl -c slime --pattern 'f(\"nccl\")' --fix 'f(name())'",
            "rewrite calls",
        ),
        (
            "patchkit recipe new base -c slime --find cuda --fix cann --files Dockerfile",
            "replace text",
        ),
    ],
    exits={
        ExitCode.OK: "written",
        ExitCode.FINDING: "the rule finds nothing, or its result must not be used",
        ExitCode.BAD_INPUT: "ast-grep does not take the pattern, or a patch does not apply",
        ExitCode.ENVIRONMENT: "an upstream could not be fetched",
    },
    result="patchkit.ops.recipe:NewRecipe",
)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What its patch is called.")],
    *,
    manifest: ManifestOption = None,
    component: OneComponentOption = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            "--pattern", metavar="CODE", help="Code to find; $NAME is one piece, $$$NAME several."
        ),
    ] = None,
    find: Annotated[
        str | None,
        typer.Option("--find", metavar="TEXT", help="Text to find, in files that are no code."),
    ] = None,
    fix: Annotated[
        str | None,
        typer.Option("--fix", metavar="CODE", help="What takes its place, with those $NAMEs."),
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the lines that it stands in.")
    ] = False,
    language: Annotated[
        str, typer.Option("--language", metavar="LANGUAGE", help="What the code is written in.")
    ] = "python",
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--files",
            metavar="GLOB",
            help="Where to look; may be given several times. Default: all files in that language.",
        ),
    ] = None,
    message: Annotated[
        str, typer.Option("--message", metavar="TEXT", help="The message of its patch.")
    ] = "",
    dry_run: DryRunOption = False,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Start a recipe with one rule, at the end of a series.

    The rule is run first: how many sites it finds is what the recipe then expects. refresh makes
    the patch. Further rules, exceptions and examples are written into the file.
    """
    from patchkit.cli.locate import cache_folder, open_manifest, pick_component
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.cli.recipe_output import render_new
    from patchkit.ops.recipe import RecipeStart, new_recipe
    from patchkit.upstream.store import Store

    terminal = Terminal(quiet=quiet, json=json)
    start = RecipeStart(name, message, pattern, find, fix, language, tuple(files or ()))
    _require_one_deed(start, remove=remove)
    chosen = open_manifest(manifest)
    picked = pick_component(chosen, component)
    store = Store(cache_folder(cache), offline=offline)
    with showing_progress(terminal) as progress:
        report = new_recipe(chosen, picked, start, store=store, progress=progress, dry_run=dry_run)
    return terminal.report("recipe new", report, ExitCode.OK, render_new(chosen.name))


def _require_one_deed(start: RecipeStart, *, remove: bool) -> None:
    from patchkit.recipes.rule import LANGUAGES

    if (start.pattern is None) == (start.find is None):
        raise UsageError("what to find is to be told once", hint="--pattern CODE or --find TEXT")
    if (start.fix is None) != remove:
        raise UsageError("what to do is to be told once", hint="--fix CODE or --remove")
    if start.find is not None and remove:
        raise UsageError("--remove is for code", hint="--fix ''")
    if start.find is not None and not start.files:
        raise UsageError("text is looked for in files that are named", hint="--files GLOB")
    if start.language not in LANGUAGES:
        hint = f"one of {', '.join(LANGUAGES)}"
        raise UsageError(f"{start.language} is not among the languages", hint=hint)
