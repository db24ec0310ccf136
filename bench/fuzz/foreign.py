"""Files that others wrote and that only one command reads: metadata, index pages, records."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random

from bench.fuzz.damage import damaged
from patchkit.errors import PatchkitError
from patchkit.extensions.planning.metadata import declaration_of
from patchkit.manifest.values import InstallStep
from patchkit.report.json import read_envelope
from patchkit.upstream.http import Page
from patchkit.upstream.index import page_files
from patchkit.workspace.checkout import read_purpose
from patchkit.workspace.journal import journal_path, read_journal
from patchkit.workspace.operations import parse_operation

_METADATA = {
    "pyproject.toml": b'[project]\nname = "demo"\nversion = "1.0"\ndependencies = ["a>=1; extra"]\n'
    b'dynamic = ["version"]\n[tool.setuptools.dynamic]\nversion = {attr = "demo.VERSION"}\n',
    "setup.cfg": b"[metadata]\nname = demo\nversion = attr: demo.VERSION\n[options]\n"
    b"install_requires =\n  a>=1\n  b[c]<2\n",
    "setup.py": b"V = '1'\nW = V + V\nX = ''.join(map(str, (1, 2)))[0:1]\nR = ['a>=1', 'b']\n"
    b"setup(name=f'{W}', version=str(X), install_requires=R)\n",
    "PKG-INFO": b"Name: demo\nVersion: 1.0\nRequires-Dist: a>=1; extra == 'x'\n",
    "demo.py": b"VERSION = '1.0'\n",
    "requirements.txt": b"a>=1  # why\nb @ https://x/y ; python_version < '3'\n-r more.txt\n",
}
_TOML = (b"[", b"]", b"=", b"[[", b'"""', b"{", b"0x" + b"f" * 6000, b"[" * 3000, b"1e999", b"#")
_PYTHON = (
    *(
        b"(" * 150,
        b"-" * 3000,
        b"W = W + W\n" * 60,
        b"0x" + b"f" * 6000,
        b"[-9:0]",
        b"'a' + " * 900,
    ),
    *(b"f'{", b"lambda: ", b"%(x)s", b"attr: ", b"file: ../x", b"a" * 4000),
)
_STEP = InstallStep(run="pip install -e .[x] -r requirements.txt", name="", directory="")

_JSON = (
    *(b"{", b"}", b"[", b"]", b'"', b"null", b"true", b"1e999", b",", b":", b'"\\ud800"', b"{}"),
    *(b"[" * 3000, b"9" * 5000, b'"../x"', b'"/x"', b'"\\u0000"', b"[]", b"-1"),
)
_RECORDS = {
    "operation": b'{"version": 3, "component": "demo", "what": "x", "files": ["a"],'
    b' "locks": {"l": {"demo": [null, null]}}, "after": null,'
    b' "before": {"base": "1", "tip": "2", "index": {"a": ["100644 00 0"]}}}',
    "journal": b'{"version": 1, "steps": [{"path": "a", "old": null, "new": null}], "folders": [],'
    b' "dropped": []}',
    "purpose": b'{"manifest": "m", "upstream": "u"}',
    "report": b'{"schema": "patchkit/check/2", "patchkit": "0", "exit_code": 0, "components": []}',
}
_HTML = b'<base href="http://x/"><a href="a-1.tar.gz#sha256=00">a</a><a href="//[::1]/b">b</a>'
_URLS = (
    b"http://[",
    b"//[x",
    b"#sha256=",
    b"file:",
    b"://",
    b"\xe2\x84\x80",
    b"%zz",
    b"http://a:b/",
)


def metadata(random: Random) -> None:
    """What a commit's metadata says is read, in bounded memory, or not known."""
    files = dict(_METADATA)
    for name in random.sample(sorted(files), 2):
        words = (*_TOML, *_PYTHON)
        files[name] = damaged(random, files[name], words, tuple(_METADATA.values()))
    for name in random.sample(sorted(files), random.randrange(4)):
        del files[name]
    found = declaration_of(files.get, [_STEP], "demo")
    assert len(found.distribution) + len(found.version) < 100_000


def records(random: Random) -> None:
    """What patchkit wrote and somebody changed, and what an index lists, is read or refused."""
    others = tuple(_RECORDS.values())
    text = {name: damaged(random, data, _JSON, others) for name, data in _RECORDS.items()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with suppress(ValueError):
            done = parse_operation(text["operation"], str.encode)
            assert isinstance(done.changed(folder), list)
        journal_path(folder).parent.mkdir()
        journal_path(folder).write_bytes(text["journal"])
        (folder / "made-for.json").write_bytes(text["purpose"])
        with suppress(PatchkitError):
            read_journal(folder)
        read_purpose(folder)
    with suppress(PatchkitError):
        read_envelope(text["report"], "report.json")
    with suppress(PatchkitError):
        html = damaged(random, _HTML, _URLS, (_HTML,))
        tuple(page_files(Page("http://x/", html)))
