"""`patchkit manifest lint`, `manifest show`, `manifest schema`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from patchkit.cli.command import command
from patchkit.cli.options import JsonOption, ManifestOption, QuietOption
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode

if TYPE_CHECKING:
    from patchkit.ops.manifest import LintedManifest, LintReport, ShownManifest


class SchemaReport(Struct, frozen=True):
    """The JSON Schema itself, under `json_schema`."""

    json_schema: dict[str, object]


@command(
    examples=[
        ("patchkit manifest lint", "every manifest of manifests/"),
        ("patchkit manifest lint qwen3-vl-npu", "one of them"),
    ],
    exits={
        ExitCode.OK: "nothing is wrong",
        ExitCode.FINDING: "only warnings, and --strict",
        ExitCode.BAD_INPUT: "a manifest cannot be used",
    },
    result="patchkit.ops.manifest:LintReport",
)
def lint(
    *,
    manifests: Annotated[
        list[str] | None,
        typer.Argument(metavar="MANIFEST", help="A manifest: a path, or a name. Default: all."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Let warnings count as problems.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Say what is wrong with manifests, with file and line.

    Looks at the files of this project only: the manifests, the parts that they extend, and the
    series and patches that they name. Nothing is fetched; whether the patches apply is what
    `patchkit check` tells.
    """
    from patchkit.cli.locate import all_manifest_paths
    from patchkit.ops.manifest import lint_manifests

    terminal = Terminal(quiet=quiet, json=json)
    report = lint_manifests(all_manifest_paths(manifests or ()), strict=strict)
    return terminal.report("manifest lint", report, report.exit_code, _render_lint)


@command(
    examples=[
        ("patchkit manifest show -m qwen3-vl-npu", "as YAML, with the shared parts merged in"),
        ("patchkit manifest show -m qwen3-vl-npu --json", "the same for programs"),
    ],
    exits={ExitCode.OK: "shown", ExitCode.BAD_INPUT: "the manifest cannot be used"},
    result="patchkit.ops.manifest:ShownManifest",
)
def show(*, manifest: ManifestOption = None, json: JsonOption = False) -> ExitCode:
    """Print a manifest as it is understood.

    Shared parts (`extends`) are merged in, folders' defaults are filled in, and local URLs are
    absolute. What is printed is a manifest that means the same.
    """
    from patchkit.cli.locate import manifest_path
    from patchkit.ops.manifest import show_manifest

    shown = show_manifest(manifest_path(manifest))
    return Terminal(json=json).report("manifest show", shown, ExitCode.OK, _render_show)


@command(
    examples=[
        ("patchkit manifest schema > manifests/manifest.schema.json", "for editors to complete by"),
        ("patchkit manifest schema --part", "the schema of files that others extend"),
    ],
    exits={ExitCode.OK: "always"},
    result="patchkit.cli.commands.manifest:SchemaReport",
)
def schema(
    *,
    part: Annotated[
        bool, typer.Option("--part", help="The schema of shared parts, which others extend.")
    ] = False,
    json: JsonOption = False,
) -> ExitCode:
    """Print the JSON Schema of manifests.

    Name it in a manifest's first line, and editors with a YAML language server complete and
    explain the keys: `# yaml-language-server: $schema=manifest.schema.json`.
    """
    from patchkit.manifest.json_schema import json_schema, schema_text

    terminal = Terminal(json=json)
    report = SchemaReport(json_schema(part=part))
    return terminal.report(
        "manifest schema",
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
