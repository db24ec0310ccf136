"""`python -m simulate`: runs of the patched stacks, and what they found.

run [RUN | RUN/STEP ...]   execute steps, compare their figures, write a report
apply [RUN | RUN/STEP ...] only make the checkouts that they need
list                       the steps
compare REPORT REPORT      two reports side by side
mutations [NAME ...]       take each patch away and see the step fail that is about it
draw                       draw small mistakes in patches, and print their list
mistakes [NAME ...]        put each mistake of the list into its patch: what notices it?
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from simulate import mistakes, mutations, noticing, reports, running, workspaces
from simulate.steps import Against, Step, every_step

BUILD = workspaces.PROJECT / "build" / "simulate"


def main(arguments: list[str]) -> int:
    """0: all that was asked for is so; 1: it is not."""
    parser = argparse.ArgumentParser(
        prog="python -m simulate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "command", choices=["run", "apply", "list", "compare", "mutations", "draw", "mistakes"]
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", choices=["npu", "cuda", "cpu"], default="npu")
    parser.add_argument("--quick", action="store_true", help="the short form")
    parser.add_argument("--workspaces", type=Path, default=BUILD, metavar="DIR")
    parser.add_argument("--report", type=Path, metavar="FILE")
    parser.add_argument("--keep", action="store_true", help="the checkouts are made already")
    parser.add_argument("--relative", type=float, default=1e-3, help="what compare allows")
    chosen = parser.parse_intermixed_args(arguments)
    if chosen.command == "compare":
        if len(chosen.names) != 2:
            parser.error("compare takes two reports")
        how = Against("", relative=chosen.relative)
        lines, equal = reports.side_by_side(*map(Path, chosen.names), how)
        print("\n".join(lines))
        return 0 if equal else 1
    if chosen.command == "mutations":
        return mutations.run(chosen.names, chosen.device, chosen.workspaces, chosen.report)
    if chosen.command == "mistakes":
        return noticing.run(chosen.names, chosen.quick, chosen.report)
    if chosen.command == "draw":
        print(mistakes.written(mistakes.draw(chosen.workspaces)), end="")
        return 0
    steps = _chosen(chosen.names, chosen.quick, parser)
    if chosen.command == "list":
        for step in steps:
            says = (step.function.__doc__ or "").strip().partition("\n")[0]
            print(f"{step.title:45} {'quick ' if step.quick else '      '}{says}")
        return 0
    if not chosen.names:
        steps = [step for step in steps if not step.apart]
    if not chosen.keep:
        workspaces.make(steps, chosen.workspaces)
    if chosen.command == "apply":
        return 0
    return _run(steps, chosen.device, chosen.workspaces, chosen.report)


def _chosen(names: list[str], quick: bool, parser: argparse.ArgumentParser) -> list[Step]:
    steps = every_step()
    known = {step.title for step in steps} | {step.run for step in steps}
    if unknown := sorted(set(names) - known):
        parser.error(f"no run or step: {', '.join(unknown)}; `list` has them all")
    if names:
        steps = [step for step in steps if step.title in names or step.run in names]
    return [step for step in steps if step.quick] if quick else steps


def _run(steps: list[Step], device: str, folder: Path, path: Path | None) -> int:
    report = reports.Report(device)
    done: dict[tuple[str, str], running.Outcome] = {}

    def outcome(step: Step, on: str) -> running.Outcome:
        if (step.title, on) not in done:
            done[step.title, on] = running.execute(step, on, folder)
        return done[step.title, on]

    good = True
    for step in steps:
        found = outcome(step, device)
        compared = [
            _compared(found, how, outcome(*side))
            for how in step.against
            if found.passed and (side := running.other_side(step, device, how))
        ]
        good = report.add(found, compared) and good
        _say(found, compared)
        if path:
            report.write(path, folder)
    print(
        f"{len(steps)} steps, {sum(s['status'] == 'passed' for s in report.steps.values())} passed"
    )
    return 0 if good else 1


def _compared(found: running.Outcome, how: Against, other: running.Outcome) -> dict[str, Any]:
    each = running.compare(found.figures or {}, other.figures or {}, how)
    return {
        "with": how.other,
        "tolerance": how.tolerance(),
        "why": how.why,
        "equal": other.passed and bool(each) and all(one.equal for one in each),
        "worst": {one.name: one.worst for one in each},
        **({} if other.passed else {"log": other.log[-4000:]}),
    }


def _say(found: running.Outcome, compared: list[dict[str, Any]]) -> None:
    good = found.passed and all(each["equal"] for each in compared)
    print(
        f"{'passed' if good else 'FAILED'}  {found.step.title}  {found.seconds:.0f} s", flush=True
    )
    if not found.passed:
        print(found.log[-3000:])
    for each in compared:
        if not each["equal"]:
            print(f"  not equal to {each['with']} within {each['tolerance']}: {each['worst']}")
            print(each.get("log", "")[-3000:])
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
