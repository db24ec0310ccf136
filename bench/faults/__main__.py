"""The command: strike at many points, print what broke, and write docs/evidence.md."""

from __future__ import annotations

import argparse
import secrets
import sys
from functools import partial
from pathlib import Path

from bench.faults.calls import FAULTS
from bench.faults.editor import WAYS
from bench.faults.page import write_edits, write_page
from bench.faults.running import Harness
from bench.faults.sandbox import sandbox
from bench.faults.scenes import EDITED, SCENES
from bench.faults.tracing import unavailable


def main() -> int:
    """Run; exits with 1 if a law was broken, 77 if nothing can be traced here."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__)
    parser.add_argument("--points", type=int, default=1200, help="how many points (1200)")
    parser.add_argument("--seed", type=int, default=None, help="which ones; default: by chance")
    parser.add_argument("--scene", action="append", help="only this scene; may be repeated")
    parser.add_argument("--fault", action="append", help="only this fault; may be repeated")
    parser.add_argument("--editor", type=int, default=0, help="how many saves of an editor (0)")
    parser.add_argument("--way", action="append", help="only this way to save; may be repeated")
    parser.add_argument("--file", help="only this file, by its path in the checkout")
    parser.add_argument("--point", type=int, help="only this point of that scene and fault")
    parser.add_argument("--write", metavar="FILE", help="write the figures into this page")
    parser.add_argument("--folder", type=Path, help="where to make the sandbox; best in memory")
    options = parser.parse_args()
    unknown = {*(options.scene or ())} - {scene.name for scene in SCENES}
    unknown |= {*(options.fault or ())} - {fault.name for fault in FAULTS}
    unknown |= {*(options.way or ())} - {*WAYS}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {_known()}")
    if why := unavailable():
        print(f"skipped: {why}")
        return 77
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    tell = partial(print, flush=True)
    page = Path(options.write) if options.write else None
    broken = 0
    with sandbox(options.folder) as box:
        if options.points:
            found = Harness(box, seed, options.scene, options.fault).strike(
                options.points, only=options.point, tell=tell
            )
            print(found.table())
            sums = f"{found.sum()} of {found.available} points"
            print(f"{sums}, {len(found.broken)} broke a law, seed {seed}")
            broken += len(found.broken)
            if page is not None:
                write_page(page, found)
        if options.editor:
            harness = Harness(box, seed, options.scene or EDITED)
            edits = harness.edit(
                options.editor, ways=options.way, file=options.file, only=options.point, tell=tell
            )
            print(edits.table())
            print(f"{edits.sum()} saves, {len(edits.broken)} broke a law, seed {seed}")
            broken += len(edits.broken)
            if page is not None:
                write_edits(page, edits)
    return 1 if broken else 0


def _known() -> str:
    scenes = ", ".join(repr(scene.name) for scene in SCENES)
    faults = ", ".join(fault.name for fault in FAULTS)
    return f"scenes {scenes}; faults {faults}; ways {', '.join(WAYS)}"


if __name__ == "__main__":
    sys.exit(main())
