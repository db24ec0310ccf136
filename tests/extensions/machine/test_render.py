"""render: what is written, what is left alone, what --dry-run says, what is asked for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.extensions.machine.machines import MANIFEST, VALUES, Machine, make_project
from tests.support.commands import Ran, run
from tests.support.golden import Golden
from tests.support.projects import write_files

FILES = [
    "Dockerfile",
    "env.sh",
    "install.sh",
    "launch-grpo-8b.sh",
    "launch-status.sh",
    "versions.md",
]


FOLDER = Path("rendered/demo")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", Machine(tmp_path / "machine"))


def render(root: Path, *words: str) -> Ran:
    return run("export", "--format", "machine", *words, cwd=root)


def conditions(ran: Ran) -> dict[str, str]:
    """File name -> condition, from --json; with a + if it was written."""
    return {
        Path(each["path"]).name: each["condition"] + "+" * each["written"]
        for each in ran.json["files"]
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def without_status(root: Path) -> Path:
    """Take a launch out of the manifest; its script."""
    manifest = root / "manifests" / "demo.yaml"
    manifest.write_text(manifest.read_text().replace("  status: {command: ray status}\n", ""))
    return root / FOLDER / "launch-status.sh"


def test_everything_is_written_once_and_the_same_from_everywhere(
    root: Path, tmp_path: Path
) -> None:
    first = render(root, *VALUES, "--json").ok()
    folder = root / FOLDER
    assert conditions(first) == dict.fromkeys(FILES, "missing+")
    assert sorted(each.name for each in folder.iterdir()) == FILES
    scripts = ["install.sh", "launch-grpo-8b.sh", "launch-status.sh"]
    assert [each for each in FILES if os.access(folder / each, os.X_OK)] == scripts
    written = {each: each.stat().st_mtime_ns for each in folder.iterdir()}
    assert conditions(render(root, *VALUES, "--json").ok()) == dict.fromkeys(FILES, "fresh")
    assert {each: each.stat().st_mtime_ns for each in folder.iterdir()} == written
    before = contents(folder)
    render(tmp_path, "-m", str(root / "manifests/demo.yaml"), *VALUES, "--force").ok()
    assert contents(folder) == before


def test_missing_values_are_told_at_once(root: Path, golden: Golden) -> None:
    golden("render-missing-values", render(root))
    assert not (root / "rendered").exists()


def test_only_what_is_rendered_needs_its_values_and_what_it_needs_comes_with_it(
    root: Path,
) -> None:
    assert "npu" in render(root, "dockerfile", "--set", "model_path=/m").err
    assert "npu" not in render(root, "install").err
    assert conditions(render(root, "versions", "--json").ok()) == {"versions.md": "missing+"}
    made = conditions(render(root, "launch", "--set", "model_path=/m", "--json").ok())
    assert sorted(made) == ["env.sh", "launch-grpo-8b.sh", "launch-status.sh"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model_path: /data\nnpu: a3\nmodle: x\n", "site.yaml:3: modle is not a site value"),
        ("model_path: ~/data\nnpu: a3\n", "site.yaml:1: model_path: ~/data begins with ~"),
        ("model_path: /path/to/model\nnpu: a3\n", "/path/to/model is a placeholder"),
        ("model_path: <MODEL>\nnpu: a3\n", "<MODEL> is a placeholder"),
        ("model_path: your_model\nnpu: a3\n", "your_model is a placeholder"),
        ("model_path: ' /x'\nnpu: a3\n", "model_path:  /x begins or ends with a blank"),
        ('model_path: "a\\nb"\nnpu: a3\n', "model_path has more than one line"),
        ("model_path: [a]\nnpu: a3\n", "model_path is a list, not text"),
        ("- a\n", "the values file is a list, not a mapping"),
        ("model_path: a\nmodel_path: b\n", "model_path is given twice"),
        ("npu: a b\nmodel_path: /x\n", "image.base: ascendai/cann:8.5.0-a b-"),
    ],
)
def test_values_files_that_cannot_be_used(root: Path, text: str, message: str) -> None:
    (root / "site.yaml").write_text(text)
    render(root, "--set", "@site.yaml").ends(4, message)
    assert not (root / "rendered").exists()


def test_set_wins_over_the_file_and_numbers_are_as_written(root: Path) -> None:
    (root / "site.yaml").write_text("# ours\nmodel_path: /m\nnpu: a3\ndevices: 16\n")
    render(root, "--set", "@site.yaml", "--set", "npu=910b").ok()
    assert "8.5.0-910b-" in (root / FOLDER / "Dockerfile").read_text()
    assert "devices=16\n" in (root / FOLDER / "launch-grpo-8b.sh").read_text()


def test_values_beside_the_files_are_found(root: Path) -> None:
    write_files(root / FOLDER, {"values.yaml": "model_path: /m\nnpu: a3\n"})
    render(root).ok()
    render(root, "--dry-run").ok()
    render(root, "--dry-run", "--set", "npu=910b").ends(1)


def test_stale_and_edited_are_told_apart(root: Path, golden: Golden) -> None:
    render(root, *VALUES).ok()
    folder = root / FOLDER
    manifest = root / "manifests" / "demo.yaml"
    manifest.write_text(manifest.read_text().replace("--fast", "--faster"))
    with (folder / "env.sh").open("a") as script:
        script.write("export MINE=1\n")
    (folder / "Dockerfile").write_text("FROM scratch\n")
    (folder / "versions.md").unlink()
    (folder / "install.sh").chmod(0o644)
    before = contents(folder)
    golden("render-check", render(root, *VALUES, "--dry-run"))
    assert contents(folder) == before
    assert conditions(render(root, *VALUES, "--json").ends(1)) == {
        "Dockerfile": "foreign",
        "env.sh": "edited",
        "install.sh": "stale+",
        "launch-grpo-8b.sh": "stale+",
        "launch-status.sh": "fresh",
        "versions.md": "missing+",
    }
    assert "MINE" in (folder / "env.sh").read_text()
    render(root, *VALUES, "--force").ok()
    render(root, *VALUES, "--dry-run").ok()


def test_the_script_of_a_launch_that_is_gone_goes_unless_it_was_edited(root: Path) -> None:
    render(root, *VALUES).ok()
    script = without_status(root)
    own = script.with_name("launch-own.sh")
    own.write_text("echo mine\n")
    text = script.read_text()
    script.write_text(text + "echo mine\n")
    assert conditions(render(root, *VALUES, "--json"))[script.name] == "edited"
    script.write_text(text)
    assert conditions(render(root, *VALUES, "--dry-run", "--json"))[script.name] == "leftover"
    assert script.exists()
    assert conditions(render(root, *VALUES, "--json").ok())[script.name] == "leftover+"
    assert (script.exists(), own.exists()) == (False, True)


def test_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    outside, script = tmp_path / "outside", root / FOLDER / "env.sh"
    script.parent.mkdir(parents=True)
    script.symlink_to(outside / "env.sh")
    assert conditions(render(root, *VALUES, "--json").ends(1))["env.sh"] == "foreign"
    render(root, *VALUES, "--force").ok()
    assert not script.is_symlink()
    assert not outside.exists()
    shutil.rmtree(root / "rendered")
    outside.mkdir()
    (root / "rendered").symlink_to(outside)
    render(root, *VALUES).ends(4, "rendered/demo leads out of the project")
    assert list(outside.iterdir()) == []


PAGE = """\
# Mine

<!-- patchkit versions: manifests/demo.yaml -->
<!-- patchkit versions: end -->

The rest.
"""


def table(root: Path, *words: str) -> Ran:
    return render(root, "--output", "README.md", *words)


def test_the_table_goes_between_its_marks(root: Path) -> None:
    page = root / "README.md"
    page.write_text(PAGE)
    table(root, "--dry-run").ends(1)
    assert page.read_text() == PAGE
    table(root).ok()
    text = page.read_text()
    assert text.startswith("# Mine\n\n<!-- patchkit versions: manifests/demo.yaml; generated,")
    assert text.endswith("\n<!-- patchkit versions: end -->\n\nThe rest.\n")
    assert "| core | `0123456789abcdef0123456789abcdef01234567` |" in text
    table(root, "--dry-run").ok()
    assert not (root / "rendered").exists()

    page.write_text(text.replace("The rest.", "Another rest."))
    table(root, "--dry-run").ok()
    # what a person wrote between them stays
    mine = PAGE.replace(" -->\n<!--", " -->\nmy table\n<!--")
    for edited, found in (
        (text.replace("| core |", "| heart |"), "edited"),
        (mine, "foreign"),
    ):
        page.write_text(edited)
        assert conditions(table(root, "--json")) == {"README.md": found}
        assert page.read_text() == edited

    page.write_text(text)
    (root / "patches/core/series").write_text("one.patch\ntwo.patch\n")
    assert conditions(table(root, "--json").ok()) == {"README.md": "stale+"}


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("# Mine\n", "README.md: has no place for the version table of manifests/demo.yaml"),
        (PAGE.replace("demo", "other"), "has no place for the version table"),
        (PAGE + PAGE, "has 2 places for the version table"),
    ],
)
def test_pages_without_the_marks(root: Path, page: str, message: str) -> None:
    (root / "README.md").write_text(page)
    table(root).ends(4, message, "<!-- patchkit versions: manifests/demo.yaml -->")
    assert (root / "README.md").read_text() == page


def test_a_template_of_the_project(root: Path) -> None:
    template = '{% extends "shipped/install.sh.j2" %}\n{% block sources %}\n\n'
    template += "echo {{ manifest.description | quote }}\n{{ super() }}{% endblock %}"
    own = root / "templates" / "install.sh.j2"
    write_files(root, {"templates/install.sh.j2": template})
    render(root, *VALUES).ok()
    text = (root / "rendered/demo/install.sh").read_text()
    assert "\necho 'A trainer on two upstreams'\n" in text
    assert "\npatchkit apply --manifest" in text
    own.write_text("# patchkit-digest: sha256:\nall mine\n")
    assert conditions(render(root, *VALUES, "--dry-run", "--json"))["install.sh"] == "stale"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% if %}", "templates/env.sh.j2:1: template: "),
        ("#\n{{ 1 / 0 }}", "templates/env.sh.j2:2: template: ZeroDivisionError: "),
        ("#\n{{ 1 + 'x' }}", "templates/env.sh.j2:2: template: TypeError: "),
        ("#\n\n{{ 'x'() }}", "templates/env.sh.j2:3: template: TypeError: "),
        ("{% include 'env.sh.j2' %}", "template: RecursionError: "),
        ("{{ '%d' % 'x' }}", "templates/env.sh.j2:1: template: TypeError: "),
        ("{{ range(10 ** 9) | list }}", "templates/env.sh.j2:1: template: OverflowError: "),
        ("a\n{{ nothing_like_it }}\n", "'nothing_like_it' is undefined"),
        ("{{ manifest.__class__.__mro__ }}", "unsafe"),
        ("{{ ''.__class__ }}", "unsafe"),
        ("no mark\n", "has no line for the digest"),
        ('{% include "../../secret" %}', "../../secret"),
    ],
)
def test_templates_that_cannot_be_used(root: Path, template: str, message: str) -> None:
    write_files(root, {"secret": "secret", "templates/env.sh.j2": template})
    render(root, *VALUES).ends(4, message)
    assert not (root / "rendered").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("docker",), "docker"),
        (("--set", "npu"), "--set npu has no ="),
        (("--set", "@none.yaml"), "none.yaml cannot be read"),
        (("--output", "none.md"), "none.md does not exist"),
    ],
)
def test_wrong_words(root: Path, words: tuple[str, ...], message: str) -> None:
    render(root, *words).ends(2, message)


def test_a_manifest_that_says_little(tmp_path: Path) -> None:
    head, _, rest = MANIFEST.partition("values:")
    text = head + rest[rest.index("components:") :]
    root = make_project(tmp_path / "project", Machine(tmp_path), text)
    made = conditions(render(root, "--json").ok())
    assert sorted(made) == ["env.sh", "install.sh", "versions.md"]
    render(root, "launch", "dockerfile").ends(
        2, "demo.yaml has no `launch:`", "demo.yaml has no `image:`"
    )


def test_what_a_component_needs_is_in_the_environment_of_all(tmp_path: Path) -> None:
    """Its scripts are sourced and its folders are put first, after those of the manifest."""
    machine = Machine.create(tmp_path / "machine")
    own = (
        "    environment:\n"
        "      scripts: ['${workspace}/trainer/own.sh']\n"
        "      paths: {PYTHONPATH: ['${workspace}/trainer/own'], OWN_PATH: [/a, /b]}\n"
    )
    at = MANIFEST.rindex("    install:\n")
    root = make_project(tmp_path / "project", machine, MANIFEST[:at] + own + MANIFEST[at:])
    (root / "workspace/trainer/own.sh").write_text("SCRIPT=$0\nOWN=set\n")
    render(root, "env", *VALUES).ok()
    shown = 'printf "%s\\n" "$OWN" "$PYTHONPATH" "$OWN_PATH"'
    done = machine.run(f'OWN_PATH=/before; . "{root}/rendered/demo/env.sh"; {shown}')
    workspace = root / "workspace"
    assert done.stdout.splitlines() == [
        "set",
        f"{workspace}/Core/src:{workspace}/trainer:{workspace}/trainer/own:/toolkit/python",
        "/a:/b:/before",
    ], done.stderr


@pytest.mark.parametrize(
    ("launch", "place"), [("grpo-8b", "workspace/trainer/tools"), ("status", "workspace/tools")]
)
def test_a_step_before_a_launch_runs_in_its_directory(
    tmp_path: Path, launch: str, place: str
) -> None:
    """It is a folder of the checkout, wherever the command itself runs."""
    machine = Machine.create(tmp_path / "machine")
    step = "{run: tool, directory: tools}"
    text = MANIFEST.replace("    before:\n", f"    before:\n      - {step}\n")
    text = text.replace("status: {", f"status: {{before: [{step}], ")
    root = make_project(tmp_path / "project", machine, text)
    (root / place).mkdir()
    render(root, "launch", *VALUES).ok()
    done = machine.run(root / f"rendered/demo/launch-{launch}.sh")
    assert done.returncode == 0, done.stderr
    assert machine.log[0] == "tool"
    assert machine.log[1].startswith(f"  in {root}/{place} with ")
    command = "workspace/trainer/examples" if launch == "grpo-8b" else "workspace"
    assert machine.log[-1].startswith(f"  in {root}/{command} with ")


def test_components_that_contradict_each_other(tmp_path: Path) -> None:
    own = "    environment: {variables: {X: '%s'}}\n    install:\n"
    text = MANIFEST.replace("    install:\n", own % "1", 1)
    at = text.rindex("    install:\n")
    text = text[:at] + own % "2" + text[at + len("    install:\n") :]
    root = make_project(tmp_path / "project", Machine(tmp_path), text)
    render(root, *VALUES).ends(4, "X is '1' to core and '2' to trainer")


def test_an_image_needs_its_files_in_the_project(root: Path, tmp_path: Path) -> None:
    render(root, *VALUES, "--output", str(tmp_path / "out")).ends(2, "is outside of the project")


def test_json_says_what_the_command_is(root: Path) -> None:
    found = render(root, *VALUES, "--json").ok().json
    assert found["schema"] == "patchkit/export-format-machine/2"
    assert found["manifest"] == "manifests/demo.yaml"
