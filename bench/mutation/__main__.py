"""The command: mutate a sample of the core, print what no test noticed, and write the page."""

from __future__ import annotations

import argparse
import secrets
import sys
from pathlib import Path

from bench.mutation.groups import GROUPS
from bench.mutation.page import figures, unexplained, write_page
from bench.mutation.running import last_run, run_group


def main() -> int:
    """Run; exits with 1 if a mutant lived that docs/evidence.md does not explain."""
    names = [group.name for group in GROUPS]
    parser = argparse.ArgumentParser(prog="python -m bench.mutation", description=__doc__)
    parser.add_argument(
        "--group", action="append", choices=names, help="only this; may be repeated"
    )
    parser.add_argument("--sample", type=int, help="how many mutants of each group; default: all")
    parser.add_argument("--seed", type=int, help="which ones; default: by chance")
    parser.add_argument(
        "--again", action="store_true", help="those that lived last time, and what is new"
    )
    parser.add_argument("--children", type=int, default=1, help="mutants tried at once (1)")
    parser.add_argument("--write", metavar="FILE", help="write the figures into this page")
    options = parser.parse_args()
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    for group in GROUPS:
        if group.name in (options.group or names):
            run = run_group(
                group,
                sample=options.sample,
                seed=seed,
                again=options.again,
                children=options.children,
            )
            print(f"{group.name}: {len(run.verdicts)} of {run.available} mutants", flush=True)
            for verdict in unexplained(run):
                print(f"  {verdict.word}: {verdict.mutant.name}\n    {verdict.mutant}", flush=True)
    runs = [each for name in names if (each := last_run(name)) is not None]
    print(figures(runs))
    if options.write:
        write_page(Path(options.write), runs)
    return 1 if any(list(unexplained(each)) for each in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
