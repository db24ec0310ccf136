"""`patchkit init`, `add`, `check --only manifest`, `status --resolved` and `init --schema`."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from patchkit.cli.command import StrictOption, command
from patchkit.cli.session import Session
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode, Problem, UsageError

if TYPE_CHECKING:
    from patchkit.ops.manifest import (
        Created,
        LintedManifest,
        LintReport,
        ShownManifest,
        UpstreamOptions,
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
    examples=[
        ("patchkit check --only manifest", "every manifest of manifests/"),
        ("patchkit check --only manifest qwen3-vl-npu", "one of them"),
    ],
    exits={
        ExitCode.OK: "nothing is wrong",
        ExitCode.FINDING: "only warnings, and --strict",
        ExitCode.BAD_INPUT: "a manifest cannot be used",
    },
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
    examples=[
        ("patchkit status --resolved -m qwen3-vl-npu", "as YAML, with the shared parts merged in"),
        ("patchkit status --resolved -m qwen3-vl-npu --json", "the same for programs"),
    ],
    exits={ExitCode.OK: "shown", ExitCode.BAD_INPUT: "the manifest cannot be used"},
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
    examples=[
        ("patchkit init --schema > manifests/manifest.schema.json", "for editors to complete by"),
        ("patchkit init --schema part", "the schema of files that others extend"),
    ],
    exits={ExitCode.OK: "always"},
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
        for problem in each.problems:
            terminal.problem(problem)
        for warning in each.warnings:
            terminal.warn(warning)
    terminal.table([(word(_verdict(each)), _amount(each), each.path) for each in report.manifests])


def _verdict(linted: LintedManifest) -> str:
    if linted.problems:
        return "error"
    return "warning" if linted.warnings else "ok"


def _amount(linted: LintedManifest) -> str:
    amount, what = len(linted.problems), "problem"
    if not amount:
        amount, what = linted.components, "component"
    return f"{amount} {what}" + ("s" if amount != 1 else "")


def _render_show(terminal: Terminal, shown: ShownManifest) -> None:
    terminal.document(shown.text)


@command(
    "json quiet",
    examples=[
        (
            "patchkit init demo --git https://github.com/ISEEKYAN/mbridge.git --ref main",
            "pin the commit that main is at now",
        ),
        (
            "patchkit init demo --git URL --ref ID --component mbridge",
            "pin that commit; no network is asked",
        ),
        (
            "patchkit init demo --archive mbridge==0.15.1",
            "a source distribution from the package index",
        ),
        ("patchkit init", "on a terminal: asks"),
    ],
    exits={
        ExitCode.OK: "written",
        ExitCode.USAGE: "the manifest is there already, or the options do not go together",
        ExitCode.ENVIRONMENT: "the upstream or the index could not be asked",
    },
    result="patchkit.ops.manifest:Created",
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
) -> ExitCode:
    """Write a commented manifest with one component.

    Makes manifests/NAME.yaml, patches/COMPONENT/series and, unless the project has it,
    the JSON Schema by which editors complete manifests. A branch or pattern that --ref names is
    tracked, too; of a tag its versions are. Overwrites nothing. Without --git or --archive it asks,
    if there is a terminal.
    """
    from patchkit.ops.manifest import (
        UpstreamOptions,
        choose_upstream,
        create_project,
    )

    options = UpstreamOptions(git, ref, archive, sha256)
    if options == UpstreamOptions():
        options = _ask("init", name)
    upstream = choose_upstream(options)
    component = component or upstream.name
    created = create_project(Path.cwd(), name or component, component, upstream)
    return session.terminal.report("init", created, ExitCode.OK, _render_created)


@command(
    "manifest json quiet",
    examples=[
        (
            "patchkit add -m demo --git https://example.com/mbridge.git --ref v0.15.1",
            "pin that tag's commit, and say so beside it",
        ),
        ("patchkit add trainer -m demo --git URL --ref ID", "by another name; nobody is asked"),
    ],
    exits={
        ExitCode.OK: "written",
        ExitCode.USAGE: "the component is there already, or the options do not go together",
        ExitCode.BAD_INPUT: "the manifest cannot be used",
        ExitCode.ENVIRONMENT: "the upstream or the index could not be asked",
    },
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
        options = _ask("add", name)
    upstream = choose_upstream(options)
    created = add_component(path, name or upstream.name, upstream)
    return session.terminal.report("add", created, ExitCode.OK, _render_created)


def _ask(word: str, name: str | None) -> UpstreamOptions:
    """The upstream by questions on the terminal; UsageError where there is none."""
    from patchkit.ops.manifest import UpstreamOptions

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        is_place = name is not None and (":" in name or "/" in name or Path(name).is_dir())
        url, *names = [name] if is_place else ["URL", *([name] if name else [])]
        line = " ".join([f"patchkit {word}", *names, "--git", str(url), "--ref main"])
        hint = f"for example `{line}`; --archive is for releases"
        raise UsageError(Problem(f"{word}: no upstream is given", hint=hint))

    import typer

    def ask(question: str) -> str:
        return str(typer.prompt(question, err=True)).strip()

    text = ask("Upstream (a git URL, or PROJECT==VERSION on the package index)")
    if "==" in text:
        return UpstreamOptions(archive=text)
    pin = ask("Pin (a full commit id; or a branch or tag, to take where it is now)")
    return UpstreamOptions(git=text, ref=pin)


def _render_created(terminal: Terminal, created: Created) -> None:
    from patchkit.cli.status_words import word

    terminal.table([(word("written"), file) for file in created.files])
    name = Path(created.manifest).stem
    terminal.hint(f"`patchkit apply -m {name}` fetches {created.component} and checks it out")
