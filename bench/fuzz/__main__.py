"""The command: as many cases as time allows, of every target in turn."""

from __future__ import annotations

import argparse
import resource
import secrets
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from types import FrameType

from bench.figures import machine, put_between_marks, today
from bench.fuzz.targets import TARGETS

_SLOW = 20.0  # seconds that no case may take
_ENDLESS = 300  # seconds after which one is stopped
_MEMORY = 4 << 30  # bytes that all may take
_TELL = 60.0  # seconds between two words about how far it is


def main() -> int:
    """Run; exits with 1 if a case failed. Each is printed as TARGET and the number to repeat it."""
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long (10)")
    parser.add_argument("--seed", type=int, default=None, help="the first number; default: chance")
    parser.add_argument("--target", action="append", choices=TARGETS, help="only this one")
    parser.add_argument("--once", action="store_true", help="only the case of the seed")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the figures there")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    signal.signal(signal.SIGALRM, _stop_case)
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    names = options.target or list(TARGETS)
    print(f"seed {seed}", flush=True)
    counts, spent, failed = Counter[str](), dict.fromkeys(names, 0.0), 0
    began = told = time.monotonic()
    end = began + 60 * options.minutes
    number = seed
    while time.monotonic() < end:
        if time.monotonic() > told + _TELL:
            told = time.monotonic()
            done = (told - began) / 60
            print(f"{done:.0f} of {options.minutes:g} minutes, {failed} failed", flush=True)
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
    print(f"{counts.total()} cases, {failed} failed, seed {seed}")
    if options.write:
        put_between_marks(
            options.write, "last run", _figures(counts, seed, options.minutes, failed)
        )
    return 1 if failed else 0


def _figures(counts: Counter[str], seed: int, minutes: float, failed: int) -> str:
    each = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    return (
        f"{today()}, seed {seed}, {minutes:g} minutes, {machine()}: **{counts.total():,} cases**,"
        f" {failed} failed.\n\n{each}."
    )


def _stop_case(signal_number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"no end within {_ENDLESS} s")


def _holds(name: str, number: int) -> bool:
    signal.alarm(_ENDLESS)
    try:
        TARGETS[name](Random(number))
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        print(f"FAILED {name} {number}: {type(error).__name__}: {error}"[:400])
        print("".join(traceback.format_exception(error)[-4:])[:3000], flush=True)
        return False
    finally:
        signal.alarm(0)
    return True


if __name__ == "__main__":
    sys.exit(main())
