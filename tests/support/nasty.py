"""A stack with everything in it that diffs get wrong: one step per kind of change."""

from __future__ import annotations

from tests.support.repos import Content, Symlink, Upstream, executable, patch_header

_CODE = """\
class Engine:
    def start(self):
        self.ready = True

        return self.ready

    def stop(self):
        self.ready = False

        return self.ready


def main():
    engine = Engine()
    engine.start()

    engine.stop()
    return 0
"""
_LONG = "".join(f"line {number}\n" for number in range(1, 61))
_TEN = _LONG.replace("line 10\n", "ten\n").replace("line 20\n", "twenty\n")
_ODD = b"odd \xff name.txt".decode("utf-8", "surrogateescape")

BASE: dict[str, Content] = {
    "code.py": _CODE,
    "long.txt": _LONG,
    "dos.txt": "one\r\ntwo\r\nthree\r\n",
    "open-end.txt": "first\nlast",
    "picture.bin": bytes(range(256)) * 8,
    "run.sh": "#!/bin/sh\necho run\n",
    "mail.txt": "Dear,\n-- \nme\n",
    "with space.txt": "a\nb\n",
    "naïve.txt": "a\nb\n",
    "link": Symlink("code.py"),
    "gone.txt": "soon\n",
    "old/place.txt": _LONG.replace("line", "row"),
    "old/exact.txt": _LONG.replace("line", "item"),
}

#: (patch name, what it changes); each builds on the one before.
STEPS: tuple[tuple[str, dict[str, Content]], ...] = (
    (
        "blocks.patch",  # where a block was put is a matter of taste: the indent heuristic
        {
            "code.py": _CODE.replace(
                "    def stop",
                "    def pause(self):\n        self.ready = None\n\n        return self.ready\n\n"
                "    def stop",
            )
        },
    ),
    (
        "far-hunks.patch",  # nine lines apart: one hunk or two
        {"long.txt": _TEN},
    ),
    ("dos.patch", {"dos.txt": "one\r\n2\r\nthree\r\n"}),
    ("open-end.patch", {"open-end.txt": "first\nend"}),
    ("binary.patch", {"picture.bin": bytes(reversed(range(256))) * 8, "new.bin": b"\0\1\2"}),
    ("mode.patch", {"run.sh": executable("#!/bin/sh\necho run\n")}),
    ("signature-like.patch", {"mail.txt": "Dear,\nyou\n"}),
    ("names.patch", {"with space.txt": "a\nc\n", "naïve.txt": "a\nc\n", _ODD: "odd\n"}),
    ("link.patch", {"link": Symlink("long.txt")}),
    ("empty-file.patch", {"empty": "", "gone.txt": None}),
    (
        "moved.patch",
        {
            "old/place.txt": None,
            "new/place.txt": _LONG.replace("line", "row").replace("row 30\n", "thirty\n"),
            "old/exact.txt": None,
            "new/exact.txt": _LONG.replace("line", "item"),
        },
    ),
    ("whitespace.patch", {"long.txt": _TEN.replace("line 40\n", "\tline 40  \n")}),
)


def nasty_stack(upstream: Upstream) -> tuple[str, dict[str, bytes]]:
    """The base commit, and patch name -> bytes in canonical form; every second has no header."""
    base = before = upstream.commit(BASE, "The base")
    patches = {}
    for number, (name, files) in enumerate(STEPS):
        after = upstream.commit(files, name, branch="stack", parents=(before,))
        header = patch_header(f"Change {name}", "Why: a test.") if number % 2 else b""
        patches[name] = header + upstream.diff(before, after)
        before = after
    return base, patches


def hostile_attributes() -> str:
    """Attributes that change how almost any file is compared."""
    return "* -diff\n*.py diff=python\n*.txt diff=odd\n*.bin diff text\n* whitespace=-trailing\n"
