"""`patchkit init`, `add`, `check --only manifest`, `status --resolved` and `init --schema`."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from patchkit.cli.command import DryRunOption, StrictOption, command
from patchkit.cli.session import Session
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode, Problem, UsageError
from patchkit.model.text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchkit.adoption.patch_sets import PatchSet
    from patchkit.adoption.upstreams import Upstream
    from patchkit.ops.adopt import Adopted
    from patchkit.ops.manifest import (
        Created,
        LintedManifest,
        LintReport,
        ShownManifest,
    )


GitOption = Annotated[
    str | None,
    typer.Option("--git", metavar="URL", help="The upstream is this git repository."),
]

RefOption = Annotated[
    str | None,
    typer.Option(
        "--ref",
        metavar="REF",
        help="Pin this full commit id, or the commit that a branch, tag or pattern of tags is "
        "at now.",
    ),
]

ArchiveOption = Annotated[
    str | None,
    typer.Option(
        "--archive",
        metavar="URL",
        help="The upstream is this archive; PROJECT==VERSION is a source distribution on the "
        "package index.",
    ),
]

Sha256Option = Annotated[
    str | None,
    typer.Option(
        "--sha256",
        metavar="HASH",
        help="SHA-256 of the source distribution or archive. Default: what the index says.",
    ),
]


class SchemaOf(str, Enum):
    """The kinds of files that have a schema."""

    MANIFEST = "manifest"
    PART = "part"


class SchemaReport(Struct, frozen=True):
    """The JSON Schema itself, under `json_schema`."""

    json_schema: dict[str, object]


@command(
    "manifests json quiet",
    examples={
        "patchkit check --only manifest": "every manifest of manifests/",
        "patchkit check --only manifest qwen3-vl-npu": "one of them",
    },
    ok="nothing is wrong",
    finding="only warnings, and --strict",
    bad_input="a manifest cannot be used",
    result="patchkit.ops.manifest:LintReport",
)
def lint(
    session: Session,
    *,
    strict: StrictOption = False,
) -> ExitCode:
    """Say what is wrong with manifests, with file and line.

    Looks at the files of this project only: the manifests, the parts that they extend, and the
    series and patches that they name. Nothing is fetched; whether the patches apply is what
    `patchkit check` tells.
    """
    from patchkit.ops.manifest import lint_manifests

    report = lint_manifests(session.manifest_paths, strict=strict)
    return session.report("check --only manifest", report, _render_lint)


@command(
    "manifest json",
    examples={
        "patchkit status --resolved -m qwen3-vl-npu": "as YAML, with the shared parts merged in",
        "patchkit status --resolved -m qwen3-vl-npu --json": "the same for programs",
    },
    ok="shown",
    bad_input="the manifest cannot be used",
    result="patchkit.ops.manifest:ShownManifest",
)
def show(
    session: Session,
) -> ExitCode:
    """Print a manifest as it is understood.

    Shared parts (`extends`) are merged in, folders' defaults are filled in, and local URLs are
    absolute. What is printed is a manifest that means the same.
    """
    from patchkit.ops.manifest import show_manifest

    shown = show_manifest(session.manifest_path)
    return session.terminal.report("status --resolved", shown, ExitCode.OK, _render_show)


@command(
    "json",
    examples={
        "patchkit init --schema > manifests/manifest.schema.json": "for editors to complete by",
        "patchkit init --schema part": "the schema of files that others extend",
    },
    ok="always",
    result="patchkit.cli.commands.manifest:SchemaReport",
)
def schema(
    session: Session,
    *,
    file: Annotated[
        SchemaOf,
        typer.Argument(metavar="FILE", help="Of which files: manifest; part, which others extend."),
    ] = SchemaOf.MANIFEST,
) -> ExitCode:
    """Print the JSON Schema of manifests.

    Name it in a manifest's first line, and editors with a YAML language server complete and
    explain the keys: `# yaml-language-server: $schema=manifest.schema.json`.
    """
    from patchkit.manifest.json_schema import json_schema, schema_text

    part = file is SchemaOf.PART
    report = SchemaReport(json_schema(part=part))
    return session.terminal.report(
        "init --schema",
        report,
        ExitCode.OK,
        lambda terminal, _: terminal.document(schema_text(part=part)),
    )


def _render_lint(terminal: Terminal, report: LintReport) -> None:
    from patchkit.cli.status_words import word

    for each in report.manifests:
        terminal.problems(each.problems)
        for warning in each.warnings:
            terminal.warn(warning)
    terminal.table([(word(_verdict(each)), _amount(each), each.path) for each in report.manifests])


def _verdict(linted: LintedManifest) -> str:
    if linted.problems:
        return "error"
    return "warning" if linted.warnings else "ok"


def _amount(linted: LintedManifest) -> str:
    if linted.problems:
        return counted(len(linted.problems), "problem")
    return counted(linted.components, "component")


def _render_show(terminal: Terminal, shown: ShownManifest) -> None:
    terminal.document(shown.text)


@command(
    "store json quiet",
    examples={
        "patchkit init demo --git https://github.com/ISEEKYAN/mbridge.git --ref main": (
            "pin the commit that main is at now"
        ),
        "patchkit init demo --git URL --ref ID --component mbridge": (
            "pin that commit; no network is asked"
        ),
        "patchkit init demo --archive mbridge==0.15.1": (
            "a source distribution from the package index"
        ),
        "patchkit init --here": "the patches that are here, where they lie",
    },
    ok="written",
    finding="with --here: a patch does not apply to its pin, or was left out",
    usage="the manifest is there already, or the options do not go together",
    environment="the upstream or the index could not be asked",
    result="patchkit.ops.manifest:Created",
    variants={"init --here": "patchkit.ops.adopt:Adopted"},
)
def init(
    session: Session,
    *,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of the manifest. Default: the component's."),
    ] = None,
    git: GitOption = None,
    ref: RefOption = None,
    archive: ArchiveOption = None,
    sha256: Sha256Option = None,
    component: Annotated[
        str | None,
        typer.Option(
            "--component", metavar="NAME", help="Name of the component. Default: the upstream's."
        ),
    ] = None,
    here: Annotated[
        bool,
        typer.Option(
            "--here",
            help="Adopt the patch sets that are here, or in the folder NAME, with the lists and "
            "pins that are kept beside them.",
        ),
    ] = False,
    dry_run: DryRunOption = False,
) -> ExitCode:
    """Write a manifest, or adopt the patches that are here.

    Makes a commented manifests/NAME.yaml with one component, patches/COMPONENT/series and, unless
    the project has it, the JSON Schema by which editors complete manifests. A branch or pattern
    that --ref names is tracked, too; of a tag its versions are. Overwrites nothing.

    With --here no file is moved: lists and pins stay where they are, only the manifest and
    its lock are new. Each set is applied to the pin that was found for it. What is not sure is
    asked on a terminal.
    """
    if here:
        if any((git, ref, archive, sha256, component)):
            raise UsageError("--here finds the upstreams: no other option says one")
        return _adopt(session, name, dry_run=dry_run)
    from patchkit.ops.manifest import (
        UpstreamOptions,
        choose_upstream,
        create_project,
    )

    options = UpstreamOptions(git, ref, archive, sha256)
    if options == UpstreamOptions():
        raise _no_upstream("init", name)
    upstream = choose_upstream(options)
    component = component or upstream.name
    created = create_project(Path.cwd(), name or component, component, upstream)
    return session.terminal.report("init", created, ExitCode.OK, _render_created)


@command(
    "manifest json quiet",
    examples={
        "patchkit add -m demo --git https://example.com/mbridge.git --ref v0.15.1": (
            "pin that tag's commit, and say so beside it"
        ),
        "patchkit add trainer -m demo --git URL --ref ID": "by another name; nobody is asked",
    },
    ok="written",
    usage="the component is there already, or the options do not go together",
    bad_input="the manifest cannot be used",
    environment="the upstream or the index could not be asked",
    result="patchkit.ops.manifest:Created",
)
def add(
    session: Session,
    *,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of the component. Default: the upstream's."),
    ] = None,
    git: GitOption = None,
    ref: RefOption = None,
    archive: ArchiveOption = None,
    sha256: Sha256Option = None,
) -> ExitCode:
    """Add a component to a manifest.

    It is written behind the others, and patches/NAME/series with it; all else in the manifest stays
    as it is. The options are those of `init`, and so is what is tracked.
    """
    from patchkit.ops.manifest import UpstreamOptions, add_component, choose_upstream

    path = session.manifest_path
    options = UpstreamOptions(git, ref, archive, sha256)
    if options == UpstreamOptions():
        raise _no_upstream("add", name)
    upstream = choose_upstream(options)
    created = add_component(path, name or upstream.name, upstream)
    return session.terminal.report("add", created, ExitCode.OK, _render_created)


def _adopt(session: Session, name: str | None, *, dry_run: bool) -> ExitCode:
    """What `--here` asks for; `name` is a folder, or names the manifest."""
    from patchkit.ops.adopt import adopt
    from patchkit.ops.manifest import component_name_of

    root = Path.cwd()
    if name is None or (root / name).is_dir():
        place = (root / (name or ".")).resolve()
        if not place.is_relative_to(root):
            hint = f"patchkit -C {quote(str(name))} init --here"
            raise UsageError(Problem(f"{name} is not below this folder", hint=hint))
        folder = place.relative_to(root).as_posix().removeprefix(".")
        name = component_name_of(place.name) or "adopted"
    else:
        folder = ""
    with session.progress() as progress:
        adopted = adopt(
            root,
            folder,
            name,
            store=session.store,
            progress=progress,
            choose=_choose if sys.stdin.isatty() and sys.stderr.isatty() else None,
            dry_run=dry_run,
        )
    return session.report("init", adopted, _render_adopted)


def _choose(patches: PatchSet, upstreams: Sequence[Upstream]) -> Upstream | None:
    """The upstream that a person names for a patch set."""
    for number, upstream in enumerate(upstreams, 1):
        typer.echo(f"{number}  {upstream.url}  {upstream.value} at {upstream.where}", err=True)
    question = f"Which of these are the patches in {patches.folder or '.'} for? (0: none)"
    number = typer.prompt(question, err=True, type=int)
    return upstreams[number - 1] if 1 <= number <= len(upstreams) else None


def _render_adopted(terminal: Terminal, adopted: Adopted) -> None:
    from patchkit.cli.status_words import word

    for row in adopted.components:
        state = "ok" if row.applied == row.patches else "failed"
        count = f"{row.applied} of {row.patches} patches apply"
        terminal.product([word(state), f"  {row.name}  {count}, pin {row.value} at {row.where}"])
        terminal.table([(patches.path, patches.why) for patches in row.sets], indent=4)
        terminal.problems(row.problems)
    terminal.problems(adopted.notes)
    if adopted.older:
        terminal.product("for other versions, left out:")
        terminal.table(
            [(left.path, counted(len(left.patches), "patch", "patches")) for left in adopted.older],
            indent=4,
        )
        folder = adopted.older[0].folder
        terminal.hint(f"`patchkit init {folder} --here` adopts the first of them")
    if adopted.written:
        terminal.product([word("written"), "  ", adopted.manifest])
        terminal.hint(f"`patchkit apply -m {Path(adopted.manifest).stem}` checks them out")


def _no_upstream(word: str, name: str | None) -> UsageError:
    """The error, with a line to type."""
    is_place = name is not None and (":" in name or "/" in name or Path(name).is_dir())
    url, *names = [name] if is_place else ["URL", *([name] if name else [])]
    line = " ".join([f"patchkit {word}", *names, "--git", str(url), "--ref main"])
    hint = f"for example `{line}`, or `patchkit init --here` where patches are; releases: --archive"
    return UsageError(Problem(f"{word}: no upstream is given", hint=hint))


def _render_created(terminal: Terminal, created: Created) -> None:
    from patchkit.cli.status_words import word

    terminal.table([(word("written"), file) for file in created.files])
    name = Path(created.manifest).stem
    terminal.hint(f"`patchkit apply -m {name}` fetches {created.component} and checks it out")
