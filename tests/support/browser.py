"""A real browser for pages: headless Chromium, if there is one; else the test is skipped."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from patchkit.templates.environments import digest_source

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: A window gets no narrower than this, whatever is asked for; a frame in it does.
_NARROWEST = 500
_FRAME = """<!doctype html><meta charset="utf-8"><body><script>
const frame = document.createElement('iframe');
frame.style = 'border: 0; height: 900px; width: ' + WIDTH + 'px';
frame.onload = () => {
    const result = frame.contentDocument.getElementById('test-result');
    if (result) document.body.append(result);
};
frame.src = 'page.html';
document.body.append(frame);
</script>"""
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
    if width < _NARROWEST:
        file = folder / "frame.html"
        file.write_text(_FRAME.replace("WIDTH", str(width)), encoding="utf-8")
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    same = "--allow-file-access-from-files"  # lets frame.html read what page.html found
    dom = _browser(folder, scheme, same, f"--window-size={width},900", "--dump-dom", file.as_uri())
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


@contextmanager
def start_browser(folder: Path, address: str) -> Iterator[None]:
    """A browser that shows `address`, until the end of the block."""
    command = _command(folder, "--remote-debugging-port=0", address)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as browser:
        try:
            yield
        finally:
            browser.kill()


def _browser(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        _command(folder, *arguments), capture_output=True, check=True, timeout=120
    )
    return done.stdout.decode("utf-8", "replace")


def _command(folder: Path, *arguments: str) -> list[str]:
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(_NAMES)} is on the path")
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += ["--no-first-run", "--disable-background-networking", "--disable-component-update"]
    return [*command, f"--user-data-dir={folder / 'browser'}", *arguments]


_WIDTHS = """
const texts = 'h1 span:last-child, h2, h3, h4, p, li, summary, caption';
for (const each of document.querySelectorAll(texts))
    each.append(' a/path/' + 'w'.repeat(150));
const wide = [...document.querySelectorAll('body *')].filter(each =>
    each.getBoundingClientRect().right > innerWidth + 1 && !each.closest('pre, .scroll'));
return {inner: innerWidth, scroll: document.documentElement.scrollWidth,
    wide: wide.map(each => each.tagName + '.' + each.className),
    low: [...document.querySelectorAll('summary')].filter(each =>
        each.offsetHeight > 0 && each.offsetHeight < 24).length};
"""


def open_page(page: str, folder: Path, *, width: int) -> Any:
    """How wide a page without a script of its own gets: `inner`, `scroll`, and what stands out.

    Words longer than any line are added to all its texts first, as paths and names of calls are.
    """
    return look_at(
        page.replace("style-src ", "script-src 'sha256-x'; style-src ", 1),
        folder,
        _WIDTHS,
        width=width,
    )
