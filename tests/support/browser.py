"""A real browser for pages: headless Chromium, if there is one; else the test is skipped."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from patchkit.templates.environments import digest_source

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_RESULT = re.compile(r'<pre id="test-result">(.*?)</pre>', re.DOTALL)


def look_at(page: str, folder: Path, script: str, *, width: int = 1280, dark: bool = False) -> Any:
    """Open a page, run `script` (the body of a function) in it, and give what it returns.

    The page's own policy holds; only this one script is allowed besides.
    """
    body = (
        f"document.addEventListener('securitypolicyviolation', e => violations.push(e.blockedURI));"
        f"const violations = []; const out = (() => {{{script}}})();"
        "const pre = document.createElement('pre'); pre.id = 'test-result';"
        "pre.textContent = JSON.stringify([out, violations]); document.body.append(pre);"
    )
    assert "script-src 'sha256-" in page
    opened = page.replace("script-src ", f"script-src {digest_source(body)} ", 1)
    file = folder / "page.html"
    file.write_text(opened.replace("</body>", f"<script>{body}</script></body>"), encoding="utf-8")
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    dom = _browser(folder, scheme, f"--window-size={width},900", "--dump-dom", file.as_uri())
    found = _RESULT.search(dom)
    assert found is not None, "the page's script did not come to its end"
    result, violations = json.loads(html.unescape(found[1]))
    assert violations == []
    return result


def print_page(page: str, folder: Path) -> bytes:
    """The page as PDF."""
    file, pdf = folder / "page.html", folder / "page.pdf"
    file.write_text(page, encoding="utf-8")
    _browser(folder, "--no-pdf-header-footer", f"--print-to-pdf={pdf}", file.as_uri())
    return pdf.read_bytes()


def _browser(folder: Path, *arguments: str) -> str:
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(_NAMES)} is on the path")
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += ["--no-first-run", f"--user-data-dir={folder / 'browser'}", *arguments]
    done = subprocess.run(command, capture_output=True, check=True, timeout=120)
    return done.stdout.decode("utf-8", "replace")


_WIDTHS = """
const wide = [...document.querySelectorAll('body *')].filter(each =>
    each.getBoundingClientRect().right > innerWidth + 1 && !each.closest('pre, .scroll'));
return {inner: innerWidth, scroll: document.documentElement.scrollWidth,
    wide: wide.map(each => each.tagName + '.' + each.className)};
"""


def open_page(page: str, folder: Path, *, width: int) -> Any:
    """How wide a page without a script of its own gets: `inner`, `scroll`, and what stands out."""
    return look_at(
        page.replace("style-src ", "script-src 'sha256-x'; style-src ", 1),
        folder,
        _WIDTHS,
        width=width,
    )
