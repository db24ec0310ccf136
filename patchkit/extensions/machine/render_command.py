"""`patchkit export --format machine`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.session import Session
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode
from patchkit.extensions.machine.topic import DocumentKind, SettingsOption

if TYPE_CHECKING:
    from patchkit.extensions.machine.lock import EnvironmentLock
    from patchkit.extensions.machine.render import RenderedFile, RenderReport


@command(
    "manifest cache json quiet",
    examples={
        "patchkit export --format machine -m demo --set model_path=/data/qwen": (
            "everything, to rendered/demo/"
        ),
        "patchkit export --format machine -m demo --set @site.yaml install env": "only some of it",
        "patchkit export --format machine -m demo lock": (
            "what the environment is installed from; asks the package index"
        ),
        "patchkit export --format machine -m demo -o README.md": "the version table in a page",
        "patchkit export --format machine -m demo --dry-run": (
            "in CI: is it what the manifest says now?"
        ),
    },
    ok="all files are written, or were up to date",
    finding="--dry-run, and a file is stale, edited or missing; or an edited one is in the way",
    usage="a site value is missing, or the manifest does not say enough",
    bad_input="the manifest, a values file or a template cannot be used",
    result="patchkit.extensions.machine.render:RenderReport",
    group="From manifest to machine",
)
def render(
    session: Session,
    what: Annotated[
        list[DocumentKind] | None,
        typer.Argument(
            metavar="WHAT",
            help="What to make: env, install, dockerfile, launch, versions or lock. Default: all "
            "that the manifest says enough for, but for lock, which asks the package index.",
        ),
    ] = None,
    *,
    settings: SettingsOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR|FILE.md",
            help="Where to. Default: rendered/MANIFEST in the project. In a page that is there the "
            "version table is put between its marks.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", "-n", help="Write nothing; report what is out of date."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files that were edited by hand.")
    ] = False,
    build_metadata: Annotated[
        bool,
        typer.Option(
            "--build-metadata",
            help="For lock: build what has its metadata computed, which runs that code.",
        ),
    ] = False,
) -> ExitCode:
    """Render the files that a machine is set up from.

    Install script, environment, Dockerfile, launch scripts and version table are made from the
    manifest and from the site values that it declares under `values:`; a file templates/NAME.j2 in
    the project takes the place of the shipped template of that name. Each file has a line with a
    digest: a file that was edited by hand is not overwritten, one that is out of date is. Without a
    file of site values, values.yaml in the output folder is read, if it is there.

    A lock is one solution of all that the manifest, its steps and its components' metadata ask for,
    with hashes, for each architecture. uv makes it.
    """
    from patchkit.cli.project import near
    from patchkit.extensions.machine.lock import solved_locks
    from patchkit.extensions.machine.render import VALUES_FILE, RenderRequest, render_manifest
    from patchkit.extensions.machine.site_values import given_values, resolve_site

    into = output if output is not None and output.suffix == ".md" else None
    folder = output
    if folder is None or into:
        folder = Path(near(session.manifest.root / "rendered" / session.manifest.name))
    given = given_values(settings or (), folder / VALUES_FILE)
    locks: tuple[EnvironmentLock, ...] = ()
    if what and DocumentKind.LOCK in what:
        with session.progress() as progress:
            site = resolve_site(session.manifest, given)
            locks = solved_locks(
                session.manifest, site, session.store, progress, build=build_metadata
            )
    request = RenderRequest(
        output=folder,
        kinds=what or (),
        given=given,
        locks=locks,
        into=into,
        check=dry_run,
        force=force,
    )
    report = render_manifest(session.manifest, request)
    return session.report("export --format machine", report, _render)


def _render(terminal: Terminal, report: RenderReport) -> None:
    from patchkit.cli.status_words import word

    terminal.table(
        [
            (word("written" if file.written else file.condition), _place(file))
            for file in report.files
        ]
    )
    for problem in report.problems:
        terminal.problem(problem)
    conditions = {file.condition.value for file in report.files if not file.written}
    if conditions & {"stale", "missing", "leftover"}:
        terminal.hint(
            f"write them again: patchkit export --format machine -m {Path(report.manifest).stem}"
        )
    if "edited" in conditions:
        terminal.hint(
            "edited by hand: move the change to the manifest or a template, then add --force"
        )
    if "foreign" in conditions:
        terminal.hint("not made by patchkit: move it away, or add --force")


def _place(file: RenderedFile) -> str:
    removed = "removed; " if file.written and file.condition == "leftover" else ""
    detail = f" ({removed}{file.detail})" if file.detail else ""
    return file.path + detail
