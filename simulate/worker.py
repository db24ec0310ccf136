"""`python -m simulate.worker RUN/STEP OUTPUT`: one process of one step; the runner starts it."""

import json
import os
import sys
from pathlib import Path

from simulate.steps import one_step, place_of_this_process


def main(title: str, output: str) -> None:
    """Execute the step; its figures go to OUTPUT as JSON."""
    sys.argv = [title]  # MindSpeed and others read the command line at their import
    place = place_of_this_process()
    figures = one_step(title).function(place)
    if place.rank == 0:
        Path(output).write_text(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:3])
    # The step is done and its figures are written. Threads of torch and gloo that still run while
    # Python is torn down abort the process now and then on a busy machine.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
