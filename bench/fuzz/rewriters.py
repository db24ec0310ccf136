"""Damaged scripts and Python code that rewrite text: what is said of them; sed is the oracle."""

from __future__ import annotations

import shutil
import subprocess
from random import Random
from time import process_time

from bench.fuzz.damage import damaged
from patchkit.extensions.python_guards.rewrite_review import RewrittenTree, review_rewrites
from patchkit.extensions.python_guards.rewriters import RewriterFiles, read_rewrites
from patchkit.extensions.python_guards.sed_script import parse_sed
from patchkit.extensions.python_guards.text_edits import UnreadableEditError
from patchkit.gitcmd.trees import TreeView
from patchkit.model.objects import FILE_MODE, TreeId
from tests.extensions.python_guards.test_rewrites import CALLER, CORE, HELPER
from tests.extensions.python_guards.test_sed_script import ALL, TEXT
from tests.model.oracle import Objects

_MOST = 15.0  # seconds of CPU that a few small files may take
_FILES = {
    "Dockerfile": b"FROM x\nENV P=core\nWORKDIR /w/core\n"
    b"RUN sed -i 's/cuda/npu/' core/io.py && \\\n"
    b"    for f in a b; do sed -i -e '1d;s/x/y/' $P/$f.py; done\n",
    "build.sh": b"cd /w/core\ncat x.patch | git apply\n"
    b"find . -name '*.py' | xargs sed -i 's/a/b/'\n"
    b"python3 - <<'E'\nt = open('core/io.py').read().replace('cuda', 'npu')\nE\n",
    "ci.yml": b"jobs:\n  a:\n    steps:\n"
    b"      - run: |\n          sed -i s/a/${{ x }}/ core/io.py\n",
    "helper.py": HELPER.encode(),
    "caller.py": CALLER.encode(),
    "own.py": b"import re\nT = [('a', 'b'), *('cuda', 'npu')]\nfor old, new in T:\n"
    b"    t = re.sub(old, new, open('core/io.py').read(), count=1)\n",
}
_WORDS = (
    *(b"sed -i ", b"-z", b"s/\\(a*\\)*b/x/g", b"$(", b"${X:-", b"<<E\n", b"\\\n", b"`", b"'", b'"'),
    *(
        b"while True:\n    t = t + t\n",
        b"def f(): return f()\n",
        b"t = t * 99999\n",
        b"lambda: (",
        b"(",
    ),
    *(
        b".replace('', 'x')",
        b"getsource(f)",
        b"run: |\n",
        b"for i in range(9):\n",
        b"[x for x in y]",
    ),
    *(
        b"re.sub('(a+)+$', '', t)",
        b"import core.io as t\n",
        b"/a/,",
        b"\\{1,9999\\}",
        b"\\9",
        b"[[:x:]]",
    ),
)
_SED = (
    *(
        b"s",
        b"/",
        b"g",
        b"I",
        b"\\(",
        b"\\)",
        b"*",
        b"\\{2,3\\}",
        b"[",
        b"]",
        b"^",
        b"$",
        b"|",
        b"&",
    ),
    *(
        b"\\n",
        b"\\1",
        b"1,",
        b"a\\",
        b"i ",
        b"d",
        b";",
        b"\n",
        b"#",
        b"+",
        b"?",
        b"{",
        b"}",
        b"\\<",
        b"-",
    ),
)


def rewriters(random: Random) -> None:
    """Damaged files are read, or said not to be with file and line, and all that is found is judged
    in a small tree, within the time.
    """
    began = process_time()
    files = dict(_FILES)
    for name in random.sample([*files], random.choice([1, 2, 3])):
        files[name] = damaged(random, files[name], _WORDS, (*_FILES.values(),))
    found, findings = read_rewrites(RewriterFiles([*files], [*files], files.get))
    for each in findings:
        path, _, line = each.where.partition(":")
        assert path in files, each
        assert line.isdigit(), each
        assert each.code == "rewrite-unread", each
    objects = Objects()
    tree = objects.tree({path: (FILE_MODE, text.encode()) for path, text in CORE.items()})
    view = TreeView(objects, TreeId(tree))
    for edit in review_rewrites(found, RewrittenTree(view, {"core"}), ()):
        assert edit.rewrite.line >= 1, edit
        assert all(0 < line <= len(view.lines(edit.file)) for line in edit.lines), edit
    assert process_time() - began < _MOST


def sed(random: Random) -> None:
    """A script that is read does what sed does; where sed refuses one, it is not read."""
    options, script = random.choice(ALL)
    data = damaged(random, script.encode(), _SED, [s.encode() for _, s in ALL])
    script = data.decode("utf-8", "ignore").replace("\0", "")
    text = TEXT + random.choice(["", "\n"])
    try:
        parsed = parse_sed(script, options)
        after = parsed.run(text).text
    except UnreadableEditError:
        return
    if parsed.exact and shutil.which("sed") is not None:
        argv = ["env", "LC_ALL=C.UTF-8", "sed", "--sandbox", *options, "-e", script]
        done = subprocess.run(
            argv, input=text.encode(), capture_output=True, check=False, timeout=60
        )
        assert done.returncode == 0, (script, done.stderr)
        assert after == done.stdout.decode(), script
