"""Law: what `git apply` accepts, we accept, with the same tree; what it refuses, we refuse."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.model.objects import (
    EXECUTABLE_MODE,
    FILE_MODE,
    SUBMODULE_MODE,
    SYMLINK_MODE,
)
from tests.model.oracle import (
    fits_no_disk,
    git_diff,
    git_verdict,
    our_verdict,
    refused_on_purpose,
)
from tests.support.laws import share

Files = dict[str, tuple[int, bytes]]

WORDS = (
    *(b"alpha", b"beta", b"  gamma", b"", b"}", b"{", b"return x", b"\tdef", b"end "),
    *(b"-- ", b"--- a/x", b"+++ b/x", b"@@ -1 +1 @@", "café".encode(), b"a\rb", b"x\x0cy", b"\xff"),
)
NAMES = (
    *("a", "b.py", "dir/c", "dir/d e", "dir/sub/f", "x\u00e9", 'q"uote', "tab\tname", "dir2/g"),
    *("a.b/h", "ab"),
)
OPTIONS = (
    *((), ("-M",), ("-M", "-C", "--find-copies-harder"), ("-B",), ("--histogram",), ("-U1",)),
    *(("-U0",), ("-U8",), ("--inter-hunk-context=0", "-U2")),
)
NOISE = (
    *(b"+zz", b"-zz", b" zz", b"", b"text", b"-- ", b"@@ -1 +1 @@", b"diff --git a/a b/a"),
    *(b"\\ No newline at end of file", b"--- a/b.py", b"rename from a", b"old mode 100644"),
    *(b"new file mode 100644", b"deleted file mode 100644", b"Binary files a/a and b/a differ"),
)


@pytest.mark.slow
@settings(max_examples=share(170))
@given(st.randoms(use_true_random=False), st.sampled_from(OPTIONS), st.booleans())
def test_law_any_change_on_any_base(
    random: Random, options: tuple[str, ...], mutated: bool
) -> None:
    hold_to_git(random, options, mutated=mutated)


#: Found by longer runs: a name out of order, no-newlines amid a hunk, a deletion that leaves bytes.
@pytest.mark.parametrize("seed", [1003454, 5000373, 6001351, 6001636, 8003089])
def test_damaged_as_once_before(seed: int) -> None:
    random = Random(seed)
    hold_to_git(random, random.choice(OPTIONS), mutated=True)


_G = b"diff --git a/f b/f\n"
_H = _G + b"--- a/f\n+++ b/f\n"
_HUNK = b"@@ -1 +1,2 @@\n old\n+new\n"


@pytest.mark.parametrize(
    ("data", "patch"),
    [
        (b"old\n", _H + b"@@ -1 +0,0 @@\n-old\n@@ -1,0 +1,2 @@\n+new 1\n+new 2\n"),
        (b"old\nx\n", _H + b"@@ -1 +0,0 @@\n-old\n@@ -1,0 +1 @@\n+new\n@@ -2 +2 @@\n-x\n+y\n"),
        (b"", _H + b"@@ -0,0 +1 @@\n+a\n@@ -0,0 +1 @@\n+b\n"),
        (b"old\n", _G + b"old mode  100644\nnew mode +100755\n"),
        (b"old\n", _G + b"old mode 100644\nnew mode 0\n" + _H[len(_G) :] + _HUNK),
        (b"old\n", _G + b"index 1234..5678  100644\n" + _H[len(_G) :] + _HUNK),
        (b"old\n", _G + b"old mode 100644\nnew mode 1000000100644\n" + _H[len(_G) :] + _HUNK),
        (b"old\n", _G + b"index 1234..56\r78 ++100644\n" + _H[len(_G) :] + _HUNK),
        (
            b"old\n",
            _G + b"deleted file mode 100644\f\n" + _H[len(_G) :].replace(b"b/f", b"/dev/null"),
        ),
        (b"old\n", _G + b"index 1234..5678\r\n" + _H[len(_G) :] + _HUNK),
        (b"old\n", _H + _HUNK + b"diff --git a/g b/"),
        (b"old\n", _H + _HUNK + b"diff --git a/g b/g\nx\n"),
        (b"old\n", _H + _HUNK + b"--- a/g\n+++ b/g\n@@ -"),
        (b"old", _H + b"@@ -1 +1 @@\n-old\n\\ No\n+new\nand twelve bytes more\n"),
        (b"old\n", _H + b"@@ -1 +1 @@\n-old\n+new\n\\ No\nand twelve bytes more\n"),
        (b"old\n", _H + b"@@ -1 +1 @@\n-old\n+new\n\\ No\nfew\n"),
        (b" \n", _H + b"@@ -1 +1,2 @@\n \n\\ No newline at end of file\n+a\n+b\n"),
        (b"\nx\n", _H + b"@@ -1 +1 @@\n-\n\\ No newline at end of file\n+b\n"),
        (b"x\n", _H + b"@@ -1,2 +1 @@\n x\n-\n\\ No newline at end of file\n"),
        (b"x\n\t\n", _H + b"@@ -1,2 +1 @@\n x\n-\n\\ No newline at end of file\n"),
        (
            b"old\n",
            b"diff --git a/n b/n\nnew file mode 644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n",
        ),
        (b"old\n", b"diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -"),
        (b"old\n", _G + b'--- "a/f\n+++ "b/f\n' + _HUNK),
        (b"old\n", _G + b'--- "a/f"\0\n+++ b/f\n' + _HUNK),
        (b"old\n", _G + b'--- "a/f\n+++ b/f\n' + _HUNK),
        (b"old\n", _G + b'similarity index 100%\nrename from f\nrename to "x\\3\n'),
        (b"old\n", b"diff --git a/n b/n\nx\n--- a/n\n+++ b/n\n@@ -2,0 +3 @@\n+a\n"),
        (b"old\n", b"diff --git a/n b\0/n\nnew file mode 100644\nindex 0000000..1234567\n"),
    ],
)
def test_verdict_and_tree_where_they_once_differed(data: bytes, patch: bytes) -> None:
    files = {"f": (FILE_MODE, data)}
    assert our_verdict(files, patch) == git_verdict(files, patch)


def test_a_folder_is_no_file_though_git_puts_one_into_its_index() -> None:
    patch = b"diff --git a/n b/n\nnew file mode 40000\nindex 0000000..1234567\n"
    assert our_verdict({"f": (FILE_MODE, b"")}, patch) is None


def hold_to_git(random: Random, options: tuple[str, ...], *, mutated: bool) -> None:
    before = some_files(random)
    after = some_edits(random, before)
    base = random.choice([before, some_edits(random, before)])
    patch = git_diff(before, after, "--binary", *options)
    if mutated:
        patch = some_damage(random, patch)
    if refused_on_purpose(patch):
        return
    ours = our_verdict(base, patch)
    assert ours == git_verdict(base, patch) or (ours is None and fits_no_disk(base, patch))


@pytest.mark.slow
@settings(max_examples=share(170))
@given(st.randoms(use_true_random=False), st.sampled_from(["-U1", "-U3", "-U0"]))
def test_law_hunks_land_where_git_puts_them(random: Random, context: str) -> None:
    words = random.sample([b"a", b"b", b"", b"c  "], random.choice([1, 2, 3]))
    lines = [random.choice(words) for _ in range(random.choice([1, 5, 12, 30]))]
    old, new, base = (some_lines_edited(random, lines, times) for times in (1, 3, 3))
    patch = git_diff(one_file(random, old), one_file(random, new), context)
    if random.random() < 0.2:
        patch = re.sub(rb"@@ -(\d+)", lambda m: b"@@ -%d" % abs(int(m[1]) - 3), patch)
    target = one_file(random, base)
    assert our_verdict(target, patch) == git_verdict(target, patch)


def one_file(random: Random, lines: list[bytes]) -> Files:
    end = random.choice([b"\n", b"\n", b"\n", b"", b" \t"]) if lines else b""
    return {"f": (FILE_MODE, b"\n".join(lines) + end)}


def some_lines_edited(random: Random, lines: list[bytes], times: int) -> list[bytes]:
    lines = list(lines)
    for _ in range(times):
        at = random.randrange(len(lines) + 1)
        if random.random() < 0.6:
            lines[at:at] = random.choices([b"a", b"N"], k=random.choice([1, 2, 4]))
        else:
            del lines[at : at + random.choice([1, 2])]
    return lines


def some_text(random: Random) -> bytes:
    if random.random() < 0.06:
        return b"\x00" + bytes(random.randrange(256) for _ in range(random.choice([1, 300])))
    newline = random.choice([b"\n"] * 8 + [b"\r\n"])
    lines = [random.choice(WORDS) for _ in range(random.choice([0, 1, 3, 8, 20]))]
    return newline.join(lines) + random.choice([newline, newline, b""])


def some_files(random: Random) -> Files:
    names = random.sample(NAMES, random.randrange(1, 8))
    files: Files = {}
    for name in names:
        mode = random.choice([FILE_MODE] * 8 + [EXECUTABLE_MODE, SYMLINK_MODE, SUBMODULE_MODE])
        files[name] = (mode, some_contents(random, mode))
    return files


def some_contents(random: Random, mode: int) -> bytes:
    if mode == SUBMODULE_MODE:
        return b"%040x" % random.randrange(1 << 80)
    return random.choice([b"a", b"dir"]) if mode == SYMLINK_MODE else some_text(random)


def some_edits(random: Random, files: Files) -> Files:
    edited = dict(files)
    for name, (mode, data) in files.items():
        kind = random.choice(["edit"] * 6 + ["mode", "delete", "move", "copy", "type", "", ""])
        if kind == "edit" and mode not in (SUBMODULE_MODE, SYMLINK_MODE):
            lines = some_lines_edited(random, data.split(b"\n"), random.choice([1, 2]))
            edited[name] = (mode, b"\n".join(lines))
        elif kind == "mode" and mode in (FILE_MODE, EXECUTABLE_MODE):
            edited[name] = (FILE_MODE ^ EXECUTABLE_MODE ^ mode, data)
        elif kind == "type":
            other = random.choice([FILE_MODE, SYMLINK_MODE, SUBMODULE_MODE])
            edited[name] = (other, some_contents(random, other))
        elif kind in ("delete", "move"):
            del edited[name]
        if kind in ("move", "copy"):
            edited[random.choice([*NAMES, f"new/{name}"])] = (mode, data)
    # a path cannot be a file and a folder
    return {
        name: what
        for name, what in edited.items()
        if not any(other.startswith(name + "/") for other in edited)
    }


def some_damage(random: Random, patch: bytes) -> bytes:
    lines = patch.split(b"\n")
    at = random.randrange(len(lines))
    kind = random.randrange(8)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(at, random.choice(NOISE))
    elif kind == 2:
        lines = [line.rstrip(b" ") for line in lines]
    elif kind == 3:
        lines = [line.removesuffix(b"\r") + b"\r" for line in lines]
    elif kind == 4:
        lines = [line for line in lines if not line.startswith((b"diff ", b"index ", b"new file"))]
    elif kind == 5:
        lines = [some_other_count(random, line) for line in lines]
    elif kind == 6:
        lines = lines + lines
    else:
        other = random.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    damaged = b"\n".join(lines)
    # git lets a header pass whose file is not named twice if nothing at all follows it
    return damaged if not re.search(rb"(^|\n)diff --git [^\n]*\n?\Z", damaged) else patch


def some_other_count(random: Random, line: bytes) -> bytes:
    match = re.match(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line)
    if match is None or random.random() < 0.6:
        return line
    numbers = [int(number or 1) for number in match.groups()]
    numbers[random.randrange(4)] += random.choice([-1, 1, 2, 10])
    return b"@@ -%d,%d +%d,%d @@" % tuple(max(number, 0) for number in numbers)


@pytest.mark.parametrize("strip", [0, 1, 2])
@pytest.mark.parametrize("options", [("--no-prefix",), ("--src-prefix=x/y/", "--dst-prefix=z/")])
def test_strip_levels(strip: int, options: tuple[str, ...]) -> None:
    before: Files = {
        "d/f": (FILE_MODE, b"a\n"),
        "f": (FILE_MODE, b"a\n"),
        "d/e/f": (FILE_MODE, b"a\n"),
    }
    patch = git_diff({"d/e/f": before["f"]}, {"d/e/f": (FILE_MODE, b"b\n")}, *options)
    assert our_verdict(before, patch, strip) == git_verdict(before, patch, f"-p{strip}")
