"""What is rendered runs: install script, environment and launch scripts, by bash itself."""

from __future__ import annotations

import json
import platform
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from patchkit import __version__
from tests.extensions.machine.machines import MANIFEST, VALUES, Machine, make_project
from tests.support.commands import run
from tests.support.projects import Project, write_files
from tests.support.repos import Upstream, make_patch

pytestmark = pytest.mark.slow
IS_FOR_IT = (
    'import sys; sys.exit("# Python %d.%d\\n" % sys.version_info[:2] not in open(sys.argv[1]))'
)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine.create(tmp_path / "machine")


@pytest.fixture
def root(tmp_path: Path, machine: Machine) -> Path:
    return make_project(tmp_path / "the project", machine)


def rendered(root: Path, *more: str) -> Path:
    run("export", "--format", "machine", *VALUES, *more, cwd=root).ok()
    return root / "rendered" / "demo"


def called(machine: Machine) -> list[str]:
    return [line for line in machine.log if not line.startswith("  in ")]


def test_the_install_script_does_all_in_order_and_again(root: Path, machine: Machine) -> None:
    script = rendered(root) / "install.sh"
    done = machine.run(script)
    assert done.returncode == 0, done.stderr
    folder, workspace = script.parent, f"{root}/workspace"
    lock = folder / f"requirements-{platform.machine()}.txt"
    pip = "python3 [-m] [pip] [install] [--no-deps]"
    environment = f"{pip} [--require-hashes] [--requirement] [{lock}]"
    manifest = "[--manifest] [manifests/demo.yaml]"
    checks = f"[check] [--only] [machine] {manifest}"
    made = f"patchkit [export] [--format] [machine] {manifest} [--output] [{folder}]"
    steps = [
        (root, f"patchkit {checks} [system]"),
        (root, f"patchkit [apply] {manifest} [--workspace] [{workspace}]"),
        (root, f"{made} [--build-metadata] [lock]"),
        (root, f"python3 [-c] [{IS_FOR_IT}] [{lock}]"),
        (root, environment),
        (f"{workspace}/Core", f"{pip} [-e] [.]"),
        (f"{workspace}/trainer/examples", "tool [one]"),
        (f"{workspace}/trainer/examples", "tool [two]"),
        (f"{workspace}/trainer", f"{pip} [-e] [.]"),
        (root, environment),
        (root, f"patchkit {checks} [system] [packages]"),
    ]
    places = [line.split(" with ")[0].removeprefix("  in ") for line in machine.log[1::2]]
    assert list(zip(places, called(machine), strict=True)) == [
        (str(at), does) for at, does in steps
    ]
    assert [line for line in done.stdout.splitlines() if line.startswith("==")] == [
        "== Is this the right machine?",
        "== Sources and patches",
        "== The environment",
        "== core: pip install -e .",
        "== trainer: prepare",
        "== trainer: pip install -e .",
        "== The environment again: the steps may have moved it",
        "== Is everything in place?",
    ]
    first = machine.log
    assert machine.run(script).returncode == 0
    assert machine.log == [*first, *first]


def test_a_step_that_fails_ends_the_installation(root: Path, machine: Machine) -> None:
    (machine.folder / "bin" / "tool").write_text("#!/bin/sh\nexit 7\n")
    done = machine.run(rendered(root) / "install.sh")
    assert done.returncode == 7
    assert called(machine)[-1] == "python3 [-m] [pip] [install] [--no-deps] [-e] [.]"


def test_without_patchkit_the_installation_says_so(root: Path, machine: Machine) -> None:
    bare = machine.folder / "bin"
    (bare / "patchkit").unlink()
    for name in ("bash", "dirname"):
        (bare / name).symlink_to(str(shutil.which(name)))
    script, environment = rendered(root) / "install.sh", {"PATH": str(bare)}
    done = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "patchkit is needed: python3 -m pip install patchkit-cli\n"


def test_the_environment(root: Path, machine: Machine) -> None:
    folder = rendered(root)
    done = machine.run(f'. "{folder}/env.sh"; printf "%s\\n" "$GREETING" "$MODEL" "$PYTHONPATH"')
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "a b $(touch pwned)",
        "/data/the model",
        f"{root}/workspace/Core/src:{root}/workspace/trainer:/toolkit/python",
    ]


def test_a_missing_toolkit_is_named(root: Path, machine: Machine) -> None:
    folder = rendered(root)
    (machine.toolkit / "set_env.sh").unlink()
    for each in ("install.sh", "launch-grpo-8b.sh"):
        done = machine.run(folder / each)
        assert done.returncode == 1
        assert f"{machine.toolkit}/set_env.sh is missing" in done.stderr
    assert machine.log == []


def test_a_launch(root: Path, machine: Machine) -> None:
    done = machine.run(rendered(root) / "launch-grpo-8b.sh", "--more", "a b")
    assert done.returncode == 0, done.stderr
    place = f"  in {root}/workspace/trainer/examples with PORT=61000 MODEL=/data/the model"
    assert machine.log == [
        "ray [start] [8]",
        place,
        "train [--fast] [--load] [/data/the model] [--colocate] [--lr] [1e-6] "
        "[actor.beta=0.98] [--bs] [4] [8] [--more] [a b]",
        place,
    ]


def _launching(root: Path, more: str) -> Path:
    """The launch script with more keys in its launch."""
    manifest = root / "manifests/demo.yaml"
    text = manifest.read_text().replace(
        "    command: train --fast\n", f"{more}    command: train --fast\n"
    )
    manifest.write_text(text)
    return rendered(root) / "launch-grpo-8b.sh"


def test_a_launch_looks_for_what_it_needs(root: Path, machine: Machine) -> None:
    """What a step makes after the step, all else before anything is done."""
    more = '    needs: ["${workspace}/a b", "README$$x", "/made/${devices}"]\n'
    script = _launching(root, more)
    hint = "put it there, or export again with --set"
    done = machine.run(script)
    wanted = f"launch-grpo-8b.sh: {root}/workspace/a b is not there: {hint} workspace=...\n"
    assert (done.returncode, done.stderr) == (1, wanted)
    (root / "workspace/a b").touch()
    done = machine.run(script)
    assert done.stderr == "launch-grpo-8b.sh: README$$x is not there: put it there\n"
    assert machine.log == []
    (machine.folder / "README$$x").touch()
    done = machine.run(script)
    assert done.stderr == f"launch-grpo-8b.sh: /made/8 is not there: {hint} devices=...\n"
    assert called(machine) == ["ray [start] [8]"]


def test_ray_is_started_for_a_launch(root: Path, machine: Machine) -> None:
    """With the NPUs that are asked for; stack_tests/test_launch_on_ray.py has a real one."""
    script = _launching(root, '    ray: {npus: "${devices}", machines: [1, "${devices}"]}\n')
    python = machine.folder / "bin/python3"
    python.write_text('#!/bin/sh\necho "python3 [$1] [$3] [$4]" >>"$LOG"\n[ "$1" = - ] || echo 8\n')
    done = machine.run(script)
    assert done.returncode == 1
    assert done.stderr.startswith("launch-grpo-8b.sh: 9 machines: set MASTER_ADDR to the address")
    done = machine.run(f'MASTER_ADDR=127.0.0.1 RAY_PORT=1 "{script}"')
    assert done.returncode == 0, done.stderr
    assert called(machine)[-4:] == [
        "python3 [-c] [127.0.0.1] []",
        "ray [start] [--head] [--node-ip-address] [127.0.0.1] [--port] [1] [--disable-usage-stats] "
        '[--resources] [{"NPU": 8}]',
        "python3 [-] [9] [8]",
        "train [--fast] [--load] [/data/the model] [--colocate] [--lr] [1e-6] "
        "[actor.beta=0.98] [--bs] [4] [8]",
    ]


def test_another_workspace_and_another_output(root: Path, machine: Machine, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where"
    shutil.move(root / "workspace", elsewhere)
    output = tmp_path / "out"
    what = ("env", "install", "launch")
    rendered(root, "--set", f"workspace={elsewhere}", "--output", str(output), *what)
    assert machine.run(output / "install.sh").returncode == 0
    assert f"[--workspace] [{elsewhere}]" in called(machine)[1]
    assert "[lock]" in called(machine)[2]
    shipped = root / "rendered" / "demo" / f"requirements-{platform.machine()}.txt"
    shipped.parent.mkdir(parents=True)
    shipped.touch()
    machine.run(output / "install.sh")
    again = called(machine)[len(called(machine)) // 2 :]
    assert f"[--requirement] [rendered/demo/{shipped.name}]" in " ".join(again)
    assert "[lock]" not in " ".join(again)
    assert machine.run(output / "launch-status.sh").returncode == 0
    assert called(machine)[-1] == "ray [status]"
    assert machine.log[-1].startswith(f"  in {elsewhere} ")


def test_the_install_script_and_patchkit_itself(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    machine = Machine.create(tmp_path / "machine")
    for name, target in (
        ("python3", sys.executable),
        ("patchkit", f"{sys.executable} -m patchkit"),
    ):
        (machine.folder / "bin" / name).write_text(f'#!/bin/sh\nexec {target} "$@"\n')
    files = {"core.py": "old\n"}
    patch = make_patch(files, {"core.py": "new\n"}, subject="New")
    pin = upstream.commit(dict(files))
    step = {"run": 'cp core.py "${target}"', "name": "install"}
    path = project.component("core", upstream, pin, {"new.patch": patch}, install=[step])
    extra = {
        "environment": {
            "versions": {"python": ">=3.10", "cann": "==8.5.0"},
            "scripts": [f"{machine.toolkit}/set_env.sh"],
        },
        "values": {"target": {"description": "where to"}},
    }
    path.write_text(path.read_text() + yaml.safe_dump(extra))
    cann = machine.folder / "cann"
    cann.mkdir()
    (cann / "version.cfg").write_text("toolkit_running_version=[7.7:8.5.0]\n")
    (machine.toolkit / "set_env.sh").write_text(f"export ASCEND_HOME_PATH={cann}\n")
    project.run("export", "--format", "machine", "--set", f"target={tmp_path}/installed").ok()
    script = project.root / "rendered" / "demo" / "install.sh"
    for _ in range(2):
        done = machine.run(script)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (tmp_path / "installed").read_text() == "new\n"
    assert "cann    8.5.0 (wanted ==8.5.0)" in done.stdout
    lock = script.with_name(f"requirements-{platform.machine()}.txt")
    text = lock.read_text()
    lock.write_text(re.sub("(?m)^# Python .*", "# Python 2.7", text))
    refused = machine.run(script)
    assert (refused.returncode, refused.stderr) == (
        1,
        f"{lock} is for Python 2.7, not for Python {platform.python_version()}: "
        "activate that one\n",
    )
    lock.write_text(text)
    (cann / "version.cfg").write_text("toolkit_running_version=[7.6:8.1.RC1]\n")
    (tmp_path / "installed").unlink()
    assert machine.run(script).returncode == 1
    assert not (tmp_path / "installed").exists(), "the wrong machine is left as it was"


_EVIL = "$(touch {0}) `touch {0}` '; touch {0}; ' \\\"; touch {0}; \\\" # | touch {0}"


def test_nothing_that_a_manifest_says_becomes_a_command(tmp_path: Path, machine: Machine) -> None:
    pwned = tmp_path / "pwned"
    evil = _EVIL.format(pwned)
    text = (
        MANIFEST.replace("A trainer on two upstreams", f'"{evil}"')
        .replace("name: prepare", f'name: "{evil}"')
        .replace("name: start Ray", f'name: "{evil}"')
        .replace("what trains", f'"{evil}"')
        .replace("GRPO on one machine.", f'"{evil}\\n{evil}"')
        .replace('PORT: "61000"', f'PORT: "{evil}"')
        .replace('"a b $(touch pwned)"', f'"{evil}"')
        .replace("no kernels", f'"{evil}"')
        .replace("actor.beta: 0.98", f'actor.beta: "{evil}"')
        .replace("--bs: [4, 8]", f'--bs: ["{evil}", 8]')
        .replace('"${workspace}/trainer"]', f'"${{workspace}}/{evil}"]')
    )
    text = text.replace("directory: examples}", f'directory: "ex $(touch {pwned})"}}')
    text = text.replace("directory: examples\n", f'directory: "ex $(touch {pwned})"\n')
    root = make_project(tmp_path / "$(touch pwned)", machine, text)
    for checkout in ("trainer", "Core"):
        (root / "workspace" / checkout / f"ex $(touch {pwned})").mkdir(parents=True)
    given = evil.replace('\\"', '"')
    settings = ("--set", f"model_path=/m {given}", "--set", "npu=a3")
    run("export", "--format", "machine", *settings, cwd=root).ok()
    folder = root / "rendered" / "demo"
    for script in ("install.sh", "launch-grpo-8b.sh"):
        done = machine.run(folder / script)
        assert done.returncode == 0, (script, done.stderr)
    (last,) = [line for line in called(machine) if line.startswith("train ")]
    assert f"[--load] [/m {given}]" in last
    assert f"[actor.beta={given}]" in last
    assert f"[--bs] [{given}] [8]" in last
    assert not pwned.exists()
    assert not list(root.rglob("pwned"))
    table = (folder / "versions.md").read_text()
    row = next(line for line in table.splitlines() if line.startswith("| core "))
    assert len(re.findall(r"(?<!\\)\|", row)) == 6, "five cells"


def test_the_dockerfile_has_no_instruction_but_its_own(tmp_path: Path, machine: Machine) -> None:
    text = MANIFEST.replace("A trainer on two upstreams", '"x\\nRUN evil\\n\\\\"')
    root = make_project(tmp_path / "p", machine, text)
    lines = (rendered(root) / "Dockerfile").read_text().splitlines()
    instructions = [each.split()[0] for each in lines if re.match(r"[A-Z]+ ", each)]
    expected = "FROM SHELL RUN ARG ARG COPY RUN WORKDIR COPY COPY COPY RUN ENTRYPOINT CMD"
    assert " ".join(instructions) == expected
    assert "FROM ascendai/cann:8.5.0-a3-ubuntu22.04-py3.11" in lines
    start = json.loads(next(line for line in lines if line.startswith("ENTRYPOINT"))[11:])
    assert start == ["/bin/bash", "-c", '. /opt/demo/rendered/demo/env.sh && exec "$@"', "bash"]


def test_shellcheck_has_nothing_to_say(root: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    scripts = sorted(rendered(root).glob("*.sh"))
    assert len(scripts) == 4
    done = subprocess.run(
        ["shellcheck", *map(str, scripts)], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


# -- the image: its file's steps done in a folder, as a machine without Docker can ---------------


def _image_steps(dockerfile: str) -> list[tuple[str, str]]:
    """(instruction, rest) of each, continued lines joined."""
    text = re.sub(r"(?m)^#.*\n", "", dockerfile).replace("\\\n", " ")
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in text.splitlines() if line]


def _rooted(script: str, machine: Machine, image: Path) -> str:
    """Shell text that runs a script with `image`'s /opt, /tmp and /var in a root of its own: this
    machine's, in a mount namespace, with the stubs on PATH.
    """
    root, here = image / "root", machine.folder
    root.mkdir(exist_ok=True)
    mounts = [f"mount --rbind / {root}"]
    mounts += [f"mount --bind {image / name} {root / name}" for name in ("opt", "tmp", "var")]
    mounts += [f"mkdir -p {root}{here}", f"mount --bind {here} {root}{here}"]
    inner = " && ".join([*mounts, f"exec chroot {root} /bin/bash -c {shlex.quote(script)}"])
    return f"unshare --mount --propagation private /bin/sh -c {shlex.quote(inner)}"


def _build(root: Path, machine: Machine, image: Path, *, in_root: bool = False) -> list[str]:
    """Do what the Dockerfile says, below `image` for the root; the programs are stubs.

    With `in_root` each RUN is done as it is written, in a root of its own (chroot in a mount
    namespace): what it writes to /opt, /tmp and /var is the image's, and stays for the next one.
    What an image builder does with COPY is done here: sources are patterns, of which one must
    match something, and folders give their contents.
    """
    arguments: dict[str, str] = {}
    folder = image
    for word, rest in _image_steps((rendered(root) / "Dockerfile").read_text()):
        if word == "ARG" and "=" in rest:
            name, _, value = rest.partition("=")
            arguments[name] = value
        elif word == "WORKDIR":
            folder = image / rest.lstrip("/")
            folder.mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            *sources, place = json.loads(rest) if rest.startswith("[") else shlex.split(rest)
            target = image / place.lstrip("/") if place.startswith("/") else folder / place
            found = [path for each in sources for path in root.glob(each.rstrip("/"))]
            assert found, rest
            for path in found:
                if path.is_dir():
                    shutil.copytree(path, target, dirs_exist_ok=True)
                else:
                    target.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, target)
        elif word == "RUN":
            within = f"/{folder.relative_to(image)}" if in_root else str(folder)
            script = rest if in_root else rest.replace("/tmp/", f"{image}/tmp/")
            script = script if in_root else script.replace("/var/", f"{image}/var/")
            given = "".join(f"{name}={shlex.quote(each)}; " for name, each in arguments.items())
            script = f"set -euo pipefail; cd {shlex.quote(within)}; {given}{script}"
            done = machine.run(_rooted(script, machine, image) if in_root else script)
            assert done.returncode == 0, (rest, done.stderr)
    return called(machine)


@pytest.fixture
def image(tmp_path: Path, machine: Machine) -> Path:
    stub = (machine.folder / "bin" / "python3").read_text()
    (machine.folder / "bin" / "apt-get").write_text(stub)
    (machine.folder / "bin" / "apt-get").chmod(0o755)
    (tmp_path / "image/var/lib/apt/lists").mkdir(parents=True)
    for checkout in ("Core", "trainer/examples"):  # what a real patchkit would have made
        (tmp_path / "image/opt/demo/workspace" / checkout).mkdir(parents=True)
    return tmp_path / "image"


@pytest.mark.parametrize("in_root", [True, False])
@pytest.mark.parametrize("wheel", [True, False])
def test_the_image_takes_patchkit_from_the_index_or_the_wheel_that_is_there(
    root: Path, machine: Machine, image: Path, *, wheel: bool, in_root: bool
) -> None:
    (image / "tmp").mkdir()
    tried = machine.run(_rooted("test -d /opt/demo/workspace", machine, image))
    if in_root and tried.returncode != 0:
        pytest.skip(f"no chroot in a mount namespace here: {tried.stderr.strip()}")
    package = f"patchkit-cli=={__version__}"
    if wheel:
        write_files(root, {"dist/patchkit_cli-9.9-py3-none-any.whl": "wheel"})
        place = "" if in_root else image
        package = f"{place}/tmp/patchkit/patchkit_cli-9.9-py3-none-any.whl"
    ran = _build(root, machine, image, in_root=in_root)
    assert f"python3 [-m] [pip] [install] [--no-cache-dir] [{package}] [uv]" in ran
    assert [each for each in ran if "patchkit-cli==" in each] == [] or not wheel
    assert "patchkit [apply] [--manifest] [manifests/demo.yaml]" in " ".join(ran)
    opt = "/opt" if in_root else f"{image}/opt"
    assert [each for each in machine.log if each.startswith(f"  in {opt}/demo/workspace/Core ")]
    assert ran[-1].startswith("patchkit [check]")
    assert not (image / "tmp/patchkit").exists()
    assert (image / "opt/demo/manifests/demo.yaml").is_file()
    assert (image / "opt/demo/patches/core/series").is_file()


def test_the_image_takes_the_index_of_the_site(root: Path) -> None:
    """As install.sh does, by the environment; what is no address never gets into the file."""
    manifest = root / "manifests/demo.yaml"
    text = manifest.read_text().replace(
        "  devices:", "  mirror: {description: our index}\n  devices:"
    )
    manifest.write_text(
        text.replace("  variables: {", "  variables: {PIP_INDEX_URL: '${mirror}', ", 1)
    )
    index = "https://mirror.example.com/simple"
    folder = rendered(root, "--set", f"mirror={index}")
    assert f"ARG PIP_INDEX_URL={index}\n" in (folder / "Dockerfile").read_text()
    assert index in (folder / "env.sh").read_text()
    before = (folder / "Dockerfile").read_bytes()
    run("export", "--format", "machine", *VALUES, "--set", "mirror=x$(id) y", cwd=root).ends(
        4, "is not an index URL"
    )
    assert (folder / "Dockerfile").read_bytes() == before
