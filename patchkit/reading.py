"""Read a file that somebody else wrote, of a bounded size: no device, no pipe, no endless patch."""

from __future__ import annotations

import errno
import stat
from pathlib import Path

#: The largest patch, and the largest of all other files that people write, in bytes. Memory is
#: some seven times that of the patch.
LARGEST_PATCH = 128 << 20
LARGEST_TEXT = 16 << 20


def read_plain(path: Path, *, most: int = LARGEST_TEXT) -> bytes:
    """The bytes of an ordinary file; OSError as for any other, too, where it is none or larger."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        kind = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
        raise OSError(kind, "is no ordinary file", str(path))
    with path.open("rb") as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"is larger than {most >> 20} MiB", str(path))
    return data
