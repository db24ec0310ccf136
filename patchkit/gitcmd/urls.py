"""URLs of upstreams: when two spellings mean one, what may be shown, what to call its folder.

Which URLs are taken at all is the manifest's business (manifest/urls.py).
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import urlsplit

_SCP = re.compile(r"(?:[A-Za-z0-9._~-]+@)?(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*):(?P<path>[^:].*)")
_PORTS = {"https": 443, "http": 80, "ssh": 22, "git": 9418}


def normal_url(url: str) -> str:
    """Host and path, the same for every spelling of one repository; no scheme, no credentials."""
    scp = _SCP.fullmatch(url) if "://" not in url else None
    if scp:
        host, path = scp["host"], scp["path"]
    else:
        parts = urlsplit(url)
        host, path = parts.netloc.rpartition("@")[2], parts.path
        host = host.removesuffix(f":{_PORTS.get(parts.scheme)}")
    path = re.sub(r"/+", "/", path).strip("/").removesuffix(".git").rstrip("/")
    return f"{host.lower() or 'file:'}/{path}"


def readable_url(url: str) -> str:
    """The URL without user and password."""
    return re.sub(r"(?<=://)[^/@]*@", "", url)


def folder_name(key: str) -> str:
    """A folder name for `key`: the readable end of it and 12 digits of its hash."""
    words = re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")
    return f"{words[-48:].lstrip('-')}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
