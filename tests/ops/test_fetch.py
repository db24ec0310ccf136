"""`patchkit fetch`: what a user sees, and what a program reads."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.support.archives import digest, make_tar
from tests.support.damage import lose_blob
from tests.support.golden import Golden
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch
from tests.support.servers import silent_server

FIX = make_patch({"a": "1\n"}, {"a": "2\n"}, subject="Fix")


def _published(project: Project, upstream: Upstream, commit: str) -> None:
    """A component "published" with a patch that stands in its own upstream."""
    place = {"git": upstream.url, "commit": commit, "path": "fix.patch", "sha256": digest(FIX)}
    project.component("published", upstream, commit, [place])


def test_what_is_fetched_is_told(project: Project, upstream: Upstream, golden: Golden) -> None:
    """Then everything works without the upstream."""
    commit = upstream.commit({"a": "1\n", "fix.patch": FIX})
    _published(project, upstream, commit)
    project.component("second", upstream, commit)

    golden("fetch", project.run("fetch", "--jobs", "1"))
    golden("fetch-again", project.run("fetch", "--offline"))
    shutil.rmtree(upstream.path)
    project.run("check", "--offline").ok()
    project.run("fetch").ok()


def test_a_mirror_is_asked_where_an_upstream_does_not_answer(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    pin = upstream.commit({"a": "1\n"})
    gone = Upstream(tmp_path / "gone.git")
    project.component("demo", gone, pin)
    project.run("fetch").ends(5)
    source = {"git": gone.url, "mirrors": [upstream.url]}
    project.component("demo", gone, pin, source=source)
    project.run("fetch").ok()


def test_a_patch_of_another_component_gets_a_name(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    trainer = Upstream.create(tmp_path / "trainer.git")
    project.component("trainer", trainer, {"fixes/fix.patch": FIX})
    entry = {"component": "trainer", "path": "fixes/fix.patch", "sha256": digest(FIX)}
    project.component("demo", upstream, {"a": "1\n"}, [{**entry, "name": "trainer-fix.patch"}])
    project.run("apply").ok()
    assert (project.checkout("demo") / "a").read_text() == "2\n"
    project.run("log", "-c", "demo").ok().shows("trainer-fix.patch")


def test_what_fails_is_told_and_the_rest_is_there(
    project: Project, upstream: Upstream, golden: Golden
) -> None:
    project.component("absent", upstream, "1" * 40)
    project.component("demo", upstream, {"a": "1\n"})
    golden("fetch-absent", project.run("fetch", "--jobs", "1"))
    project.run("fetch", "-c", "demo", "--offline").ok()


def test_a_wrong_hash_weighs_more_than_a_dead_host(project: Project, upstream: Upstream) -> None:
    commit = upstream.commit({"fix.patch": "other\n"})
    project.component("dead", Upstream(Path("/nothing.git")), commit)
    _published(project, upstream, commit)

    project.run("fetch", "-c", "dead").ends(5)
    project.run("fetch", "-c", "published").ends(4)
    project.run("fetch").ends(4)


def test_offline_asks_nobody(project: Project, upstream: Upstream, golden: Golden) -> None:
    project.component("demo", upstream, {"a": "1\n"})

    golden("fetch-offline", project.run("fetch", "--offline"))


def test_the_machine_form(project: Project, upstream: Upstream) -> None:
    commit = upstream.commit({"a": "1\n", "fix.patch": FIX})
    project.component("absent", upstream, "1" * 40)
    _published(project, upstream, commit)

    report = project.run("fetch", "--json").json

    assert report["schema"] == "patchkit/fetch/2"
    assert report["exit_code"] == 5
    absent, published = report["components"]
    assert (published["status"], published["commit"]) == ("fetched", commit)
    assert published["files"] == 1
    assert published["tree"] == upstream.tree(commit)
    assert (absent["status"], absent["commit"]) == ("failed", None)
    assert "1" * 40 in absent["problems"][0]["what"]


def test_verify_mends_the_cache(project: Project, upstream: Upstream) -> None:
    project.component("demo", upstream, {"a": "1\n"})
    project.run("fetch").ok()
    (pack,) = (Path.home() / "cache").glob("repos/*/objects/pack/*.pack")
    data = bytearray(pack.read_bytes())
    data[-25] ^= 0xFF
    pack.chmod(0o644)
    pack.write_bytes(data)
    for status, damaged in (("fetched", True), ("cached", False)):
        (component,) = project.run("fetch", "--verify", "--json").json["components"]
        assert (component["status"], component["damaged"]) == (status, damaged)


def test_a_cache_that_cannot_be_made(project: Project, upstream: Upstream) -> None:
    project.component("demo", upstream, {"a": "1\n"})
    (project.root / "file").touch()

    ran = project.run("fetch", "--cache", str(project.root / "file" / "cache")).ends(
        5, "--cache DIR"
    )
    assert "Traceback" not in ran.err


def test_a_blob_that_no_server_has_is_a_warning(project: Project, upstream: Upstream) -> None:
    project.component("demo", upstream, {"a": "1\n", "big.gif": "2\n"})
    lose_blob(upstream, "2\n")

    project.run("fetch").ok().says("no server has the contents of big.gif")
    assert json.loads(project.run("fetch", "--json").stdout)["components"][0]["absent"] == [
        "big.gif"
    ]


@pytest.mark.slow
def test_a_full_disk_is_one_clear_error(project: Project, upstream: Upstream) -> None:
    noise = bytes(random.Random(1).randbytes(1 << 19))
    project.component("git", upstream, {"a": noise})
    archive = make_tar({"d/a": noise})
    (project.root / "a.tar.gz").write_bytes(archive)
    text = (project.root / "manifests" / "demo.yaml").read_text()
    project.write(
        {
            "manifests/demo.yaml": text + "  archive:\n    source: {archive: ./a.tar.gz}\n"
            f"    pin: {{sha256: {digest(archive)}}}\n"
        }
    )

    # no file may become larger than 128 KiB: to a program, this is a disk that is full
    command = f"ulimit -f 128; exec {sys.executable} -m patchkit fetch --json"
    done = subprocess.run(
        ["bash", "-c", command], cwd=project.root, capture_output=True, check=False
    )

    assert done.returncode == 5, done.stderr
    report = json.loads(done.stdout)
    assert [component["status"] for component in report["components"]] == ["failed", "failed"]
    assert list((Path.home() / "cache" / "scratch").iterdir()) == []
    project.run("fetch").ok()


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_means_at_once_and_everything(project: Project, ending: int) -> None:
    with silent_server() as port:
        dead = f"git://127.0.0.1:{port}/r.git"
        components = {n: {"source": {"git": dead}, "pin": "1" * 40} for n in ("one", "two")}
        data = yaml.safe_dump({"version": 1, "components": components})
        project.write({"manifests/demo.yaml": data})
        process = subprocess.Popen(
            [sys.executable, "-m", "patchkit", "fetch"],
            cwd=project.root,
            stderr=subprocess.PIPE,
            start_new_session=True,  # as when a terminal is there, and git in another session
            # nohup and a shell's & have it ignored, and so would we
            preexec_fn=partial(signal.signal, ending, signal.SIG_DFL),  # noqa: PLW1509
        )
        scratch = Path.home() / "cache" / "scratch"
        end = time.monotonic() + 20
        while not list(scratch.glob("*/stage.git/objects")) and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.3)
        began = time.monotonic()
        process.send_signal(ending)
        _, err = process.communicate(timeout=20)

    assert process.returncode == 130
    assert time.monotonic() - began < 4
    assert b"Traceback" not in err
    assert list(scratch.iterdir()) == []
