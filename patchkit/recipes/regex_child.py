"""Find what a regular expression matches: a script, run in a process of its own by `regex.py`.

Each line that it reads is `[regex, replacement, text]`, each line that it writes
`[[start, end, what takes its place], ...]`, or `"what is wrong"`. It ends once a regular
expression has taken too long.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import sys
import time
from collections import Counter

_LARGEST = 1 << 26  # characters that take the place of others in one text


def found(regex: str, replacement: str, text: str) -> list[tuple[int, int, str]] | str:
    """All matches that are not empty, or what is wrong."""
    answer, size = [], 0
    try:
        re.sub(regex, replacement, "", flags=re.MULTILINE)  # a group that is not there
        for match in re.finditer(regex, text, re.MULTILINE):
            if match.start() != match.end():
                new = match.expand(replacement) if "\\" in replacement else replacement
                answer.append((*match.span(), new))
                size += len(new)
                if size > _LARGEST:
                    return "what it writes is too large"
    except (re.error, IndexError, OverflowError, RecursionError, MemoryError) as error:
        return str(error)
    return answer


def main() -> None:
    """Answer until there are no more questions; the first argument is how many seconds one regular
    expression may take, over all texts.
    """
    patience, spent = float(sys.argv[1]), Counter[str]()
    with open(os.devnull, "w") as nowhere, open(0) as asked, open(1, "w") as told:  # noqa: PTH123
        for line in asked:
            regex, replacement, text = json.loads(line)
            left = max(0.01, patience - spent[regex])
            faulthandler.dump_traceback_later(left, exit=True, file=nowhere)
            before = time.process_time()
            answer = found(regex, replacement, text)
            spent[regex] += time.process_time() - before  # type: ignore[assignment]
            told.write(json.dumps(answer) + "\n")
            told.flush()
            faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
