"""The command: as many cases as time allows, of every target in turn."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
import traceback
from collections import Counter
from random import Random

from bench.fuzz.targets import TARGETS

_SLOW = 20.0  # seconds that no case may take


def main() -> int:
    """Run; exits with 1 if a case failed. Each is printed as TARGET and the number to repeat it."""
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long (10)")
    parser.add_argument("--seed", type=int, default=None, help="the first number; default: chance")
    parser.add_argument("--target", action="append", choices=TARGETS, help="only this one")
    parser.add_argument("--once", action="store_true", help="only the case of the seed")
    options = parser.parse_args()
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    names = options.target or list(TARGETS)
    print(f"seed {seed}", flush=True)
    counts, spent, failed = Counter[str](), dict.fromkeys(names, 0.0), 0
    end = time.monotonic() + 60 * options.minutes
    number = seed
    while time.monotonic() < end:
        # the target that had least time so far
        name = min(names, key=lambda each: spent[each])
        start = time.monotonic()
        failed += not _holds(name, number)
        took = time.monotonic() - start
        spent[name] += took
        counts[name] += 1
        if took > _SLOW:
            failed += 1
            print(f"SLOW {name} {number}: {took:.0f} s", flush=True)
        number += 1
        if options.once:
            break
    for name in names:
        print(f"{name:14} {counts[name]:8} cases  {spent[name]:6.0f} s")
    print(f"{sum(counts.values())} cases, {failed} failed")
    return 1 if failed else 0


def _holds(name: str, number: int) -> bool:
    try:
        TARGETS[name](Random(number))
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        print(f"FAILED {name} {number}: {type(error).__name__}: {error}"[:400])
        print("".join(traceback.format_exception(error)[-4:])[:3000], flush=True)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
