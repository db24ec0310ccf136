"""Git servers that cut, stall, send garbage or say no, at any byte of any answer.

`python -m bench.remotes --points N --seed S` runs fetch, apply and bump against `git http-backend`
behind a server that plays a trick on one answer. Afterwards: the command ended in time, and said
why it failed; checkout and project are old or new; the same command works once the server is honest
again, as if nothing had happened; and every byte of the cache is sound.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.figures import put_between_marks, today
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch, tree_files
from tests.support.smart import SmartServer, Trick, smart_server

_COMMANDS = {
    "fetch": ("fetch",),
    "apply": ("apply",),
    "bump": ("bump", "demo", "--to", "latest"),
}
_STATUSES = (301, 302, 307, 308, 400, 401, 403, 404, 410, 418, 429, 500, 502, 503, 504)
_WHERES = ("http://127.0.0.1:1/x", "file:///etc", "ext::sh -c id", "/elsewhere.git", "")
#: Seconds: a stall is noticed after one (GIT_HTTP_LOW_SPEED_TIME), at most three times in a row.
_PATIENCE = 30.0
_LIMIT = "GIT_HTTP_LOW_SPEED_TIME"


@dataclass(frozen=True)
class Point:
    """A trick on the answer to the `request`-th request (from 0) of a command."""

    command: str
    request: int
    kind: str
    trick: Trick


class Stage:
    """A project whose upstream is behind the server, put back for every point."""

    def __init__(self, folder: Path, upstream: Upstream, server: SmartServer) -> None:
        self.root, self.server, self.said = folder, server, ""
        self.project = Project(folder / "work" / "project")
        base = {f"f{n}.txt": f"{n}\n" * 400 + os.urandom(900).hex() for n in range(12)}
        old = upstream.commit(base)
        upstream.commit({"f1.txt": "new first line\n" + base["f1.txt"], "new.txt": "new\n"})
        upstream.git("config", "uploadpack.allowFilter", "true")  # as the large hosts do
        self._patch = make_patch(base, {"f2.txt": base["f2.txt"] + "patched\n"}, subject="One")
        self._upstream, self._old = Upstream(upstream.path), old
        self.sizes: dict[str, list[int]] = {}
        self.right: dict[str, tuple[int, object]] = {}
        for name, argv in _COMMANDS.items():
            self._prepare(name)
            server.sizes.clear()
            code = self.project.run(*argv).code
            self.sizes[name] = list(server.sizes)
            self.right[name] = code, self.state()

    def _prepare(self, name: str) -> None:
        work = self.root / "work"
        shutil.rmtree(work, ignore_errors=True)
        self.project.root.mkdir(parents=True)
        os.environ["PATCHKIT_CACHE"] = str(work / "cache")
        self.project = Project(self.project.root)
        path = self.project.component(
            "demo", self._upstream, self._old, {"one.patch": self._patch}, track="main"
        )
        text = path.read_text().replace(self._upstream.url, f"{self.server.url}/upstream.git")
        path.write_text(text)
        if name == "bump":
            self.project.run("apply").ok()
        shutil.rmtree(self.root / name, ignore_errors=True)
        shutil.copytree(work, self.root / name, symlinks=True)

    def restore(self, name: str) -> None:
        """As it was before the command."""
        shutil.rmtree(self.root / "work")
        shutil.copytree(self.root / name, self.root / "work", symlinks=True)

    def state(self) -> object:
        """What users see: the project's files, and the checkout's."""
        checkout = self.project.checkout("demo")
        files = {n: d for n, d in self.project.files("").items() if "workspace/" not in n}
        inside = tree_files(checkout, "HEAD") if (checkout / ".git").exists() else None
        seen = {n: d for n, d in self.project.files("workspace").items() if "/.git" not in n}
        return files, inside, {n: d for n, d in seen.items() if "/.patchkit" not in n}

    def broken(self, point: Point) -> list[str]:
        """What does not hold when the trick is played."""
        argv, found = _COMMANDS[point.command], []
        code, new = self.right[point.command]
        self.restore(point.command)
        old = self.state()
        self.server.tricks[:] = [None] * point.request + [point.trick]
        began = time.monotonic()
        # what is honest may be slow on a busy machine
        os.environ[_LIMIT] = "1" if point.trick.stall is not None else "60"
        ran = self.project.run(*argv)
        os.environ[_LIMIT] = "60"
        took, self.said = time.monotonic() - began, ran.err
        self.server.tricks.clear()
        if took > _PATIENCE:
            found.append(f"took {took:.0f} s")
        if "bug" in ran.err or "Traceback" in ran.err:
            found.append(f"says {ran.err}")
        if ran.code not in (code, 5) or (ran.code != 0 and "error:" not in ran.err):
            found.append(f"exit {ran.code}: {ran.err}")
        if self.state() not in (old, new):
            found.append("neither old nor new")
        again = self.project.run(*argv)
        if again.code != code or self.state() != new:
            found.append(f"the next run: exit {again.code}: {again.err}")
        if self.project.run("fetch", "--verify", "--offline").code != 0:
            found.append("the cache is not sound")
        return found


def points(stage: Stage, dice: random.Random) -> Iterator[Point]:
    """Endless distinct ones."""
    while True:
        command = dice.choice(list(_COMMANDS))
        sizes = stage.sizes[command]
        request = dice.randrange(len(sizes))
        kind = dice.choice(["cut", "cut", "garbage", "stall", "status", "redirect"])
        if kind in ("status", "redirect"):
            where = (("Location", dice.choice(_WHERES)),) if kind == "redirect" else ()
            status = dice.choice(_STATUSES[:4] if kind == "redirect" else _STATUSES[4:])
            yield Point(command, request, kind, Trick(status=status, headers=where))
        else:
            at = dice.randrange(sizes[request] + 1)
            tricks = {"cut": Trick(cut=at), "stall": Trick(stall=at), "garbage": Trick(garbage=at)}
            yield Point(command, request, kind, tricks[kind])


def main() -> int:
    """Run; exits with 1 if anything did not hold."""
    parser = argparse.ArgumentParser(prog="python -m bench.remotes", description=__doc__)
    parser.add_argument("--points", type=int, default=200, help="how many (200)")
    parser.add_argument("--seed", type=int, default=None, help="which ones; default: by chance")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the figures there")
    options = parser.parse_args()
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    who = {
        f"GIT_{role}_{what}": "u@example.com"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    os.environ.update(who)
    counts: Counter[tuple[str, str]] = Counter()
    broken = 0
    with tempfile.TemporaryDirectory(prefix="patchkit-remotes-") as name:
        folder = Path(name)
        (folder / "home").mkdir()
        os.environ["HOME"] = str(folder / "home")
        upstream = Upstream.create(folder / "upstream.git")
        with smart_server(upstream) as server:
            stage = Stage(folder, upstream, server)
            found = points(stage, random.Random(seed))
            seen: set[Point] = set()
            while len(seen) < options.points:
                point = next(found)
                if point in seen:
                    continue
                seen.add(point)
                counts[point.command, point.kind] += 1
                if wrong := stage.broken(point):
                    broken += 1
                    print(f"BROKEN {point}\n" + "\n".join(f"    {each}" for each in wrong))
                if len(seen) % 20 == 0:
                    print(f"{len(seen)} of {options.points}, {broken} broke a law", flush=True)
    text = _page(counts, seed, broken)
    print(text)
    print(f"{counts.total()} points, {broken} broke a law, seed {seed}")
    if options.write:
        put_between_marks(options.write, "remotes", text)
    return 1 if broken else 0


def _page(counts: Counter[tuple[str, str]], seed: int, broken: int) -> str:
    kinds = ("cut", "garbage", "stall", "status", "redirect")
    rows = [["", *kinds, "sum"], ["---"] * (len(kinds) + 2)]
    for command in _COMMANDS:
        row = [counts[command, kind] for kind in kinds]
        rows.append([command, *map(str, row), str(sum(row))])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return (
        f"{today()}, seed {seed}: **{counts.total()} distinct points**, {broken} broke a law.\n\n"
        f"{table}"
    )


if __name__ == "__main__":
    sys.exit(main())
