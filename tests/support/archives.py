"""Archives made of a few files, also of kinds that no honest tool makes."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from hashlib import sha256

from tests.support.repos import File, Symlink

Content = str | bytes | File | Symlink


def make_tar(files: Mapping[str, Content], *, compression: str = "gz", mtime: int = 0) -> bytes:
    """A tar archive of the files, in the order given."""
    return tar_of([_member(name, content, mtime) for name, content in files.items()], compression)


def tar_of(members: Iterable[tuple[tarfile.TarInfo, bytes]], compression: str = "gz") -> bytes:
    """A tar archive of exactly these members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{compression}") as tar:  # type: ignore[call-overload]
        for info, data in members:
            info.size = len(data) if info.isreg() else 0
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def tar_member(name: str, data: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    """A member with whatever a header can say (`type`, `linkname`, `mode`)."""
    info = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def make_zip(files: Mapping[str, Content]) -> bytes:
    """A zip archive of the files as a Unix machine makes it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info, data = _member(name, content, 0)
            entry = zipfile.ZipInfo(name)
            kind = 0o120000 if info.issym() else 0o100000
            entry.external_attr = (kind | info.mode) << 16
            archive.writestr(entry, info.linkname.encode() if info.issym() else data)
    return out.getvalue()


def digest(data: bytes) -> str:
    """The SHA-256 in hex."""
    return sha256(data).hexdigest()


def _member(name: str, content: Content, mtime: int) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.mtime = mtime
    if isinstance(content, Symlink):
        info.type, info.linkname = tarfile.SYMTYPE, content.target
        return info, b""
    plain = content.data if isinstance(content, File) else content
    info.mode = 0o755 if isinstance(content, File) and content.mode == "100755" else 0o644
    return info, plain if isinstance(plain, bytes) else plain.encode()
