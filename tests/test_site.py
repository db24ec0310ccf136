"""The documentation's site, as its readers meet it: in a browser, page by page."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.support.browser import start_browser
from tests.support.servers import serving
from tests.test_docs import BLOCK, DOCS, RUNNABLE, steps_of
from tools.site_hooks import commands, for_site, home

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
_CODE = re.compile(r"<code(?: data-copy=\"([^\"]*)\")?>(.*?)</code></pre>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
#: Opens each page in a frame, in both colour schemes, and sends what axe says of its contrast.
_VISITOR = """<!doctype html><title>visitor</title><body><script>
const visit = (page) => new Promise((done, failed) => {
  const frame = document.createElement('iframe');
  frame.style = 'border: 0; width: 1280px; height: 900px';
  frame.onload = async () => {
    try {
      const inner = frame.contentWindow, script = inner.document.createElement('script');
      script.src = '/axe.min.js';
      await new Promise(loaded => { script.onload = loaded; inner.document.head.append(script); });
      const still = inner.document.createElement('style');
      still.textContent = '* { transition: none !important }';
      inner.document.head.append(still);
      const found = [];
      for (const scheme of ['default', 'slate']) {
        inner.document.body.setAttribute('data-md-color-scheme', scheme);
        const {violations} = await inner.axe.run(
          {include: [['body']]},
          {runOnly: ['color-contrast'], resultTypes: ['violations'], elementRef: false});
        for (const rule of violations) for (const node of rule.nodes)
          found.push([scheme, node.html.slice(0, 120), node.any[0].message]);
      }
      done(found);
    } catch (error) { failed(error); } finally { frame.remove(); }
  };
  frame.src = page;
  document.body.append(frame);
});
(async () => {
  const answer = {};
  try { for (const page of PAGES) answer[page] = await visit(page); }
  catch (error) { answer.error = String(error); }
  await fetch('/answer', {method: 'POST', body: JSON.stringify(answer)});
})();
</script>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make site` builds it."""
    pytest.importorskip("mkdocs", reason="mkdocs is in the extra `docs`")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_there_and_every_link_found(site: Path) -> None:
    assert (site / "howto/bump/index.html").is_file()


def test_home_says_what_patchkit_is(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    assert "see drift before it bites" in " ".join(_TAG.sub("", home).split())


def test_no_page_shows_a_placeholder(site: Path) -> None:
    pages = [p for p in site.rglob("*.html") if "OWNER" in p.read_text(encoding="utf-8")]
    assert pages == []


@pytest.mark.parametrize("name", RUNNABLE)
def test_the_commands_of_a_block_are_those_that_tests_run(name: str) -> None:
    for block in BLOCK.findall((DOCS / name).read_text(encoding="utf-8")):
        assert commands(block) == "\n".join(step.command for step in steps_of(block))


def test_the_copy_button_takes_commands_only(site: Path) -> None:
    page = (site / "tutorial/index.html").read_text(encoding="utf-8")
    blocks = [(copy, html.unescape(_TAG.sub("", code))) for copy, code in _CODE.findall(page)]
    prompted = [(copy, text) for copy, text in blocks if text.startswith("$ ")]
    assert len(prompted) > 5
    assert all(html.unescape(copy) == commands(text) for copy, text in prompted)


def test_a_page_leads_out_of_the_site_by_address() -> None:
    page = "<!-- setup\nrm x\n-->\n\n[a](../README.md#b) [c](../docs/d.md) [e](f.md) [g](images)\n"
    assert for_site(page, "howto/x.md", "https://x", "v1") == (
        "[a](../README.md#b) [c](../docs/d.md) [e](f.md) [g](https://x/tree/v1/docs/howto/images)\n"
    )
    assert for_site("[a](../b/c.py#d)", "x.md", "https://x", "v1") == (
        "[a](https://x/blob/v1/b/c.py#d)"
    )
    assert for_site("see [a](../b/c.py#d)", "x.md", "https://x/OWNER/y", "v1") == "see a"


def test_home_has_the_links_of_the_readme() -> None:
    readme = "# x\n\n[a](docs/b.md#c) [d](e.py) [f](https://g)\n\n## What is in the box\n\nh\n"
    assert home(readme, "# Documentation\n\n## How to\n\n[i](j.md)\n") == (
        "# x\n\n[a](b.md#c) [d](../e.py) [f](https://g)\n\n## How to\n\n[i](j.md)\n"
    )


def test_every_text_of_every_page_can_be_read(site: Path, tmp_path: Path) -> None:
    axe = find_spec("axe_core_python")
    if axe is None or axe.origin is None:
        pytest.skip("axe-core-python is in the extra `docs`")
    shutil.copy(Path(axe.origin).with_name("axe.min.js"), site)
    pages = sorted(f"/{p.relative_to(site).as_posix()}" for p in site.rglob("*.html"))
    text = _VISITOR.replace("PAGES", json.dumps(pages))
    (site / "visitor.html").write_text(text, encoding="utf-8")
    answer = _visited(site, tmp_path)
    assert sorted(answer) == pages, answer.get("error")
    assert {page: found for page, found in answer.items() if found} == {}


def _visited(site: Path, folder: Path) -> Any:
    """What the visitor's page sends, from a browser on a server of the site."""
    answers: list[bytes] = []
    answered = Event()

    class Listening(SimpleHTTPRequestHandler):
        def do_POST(self) -> None:
            answers.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()
            answered.set()

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    with (
        serving(partial(Listening, directory=str(site))) as port,
        start_browser(folder, f"http://127.0.0.1:{port}/visitor.html"),
    ):
        assert answered.wait(600), "the browser did not come to its end"
    return json.loads(answers[0])
