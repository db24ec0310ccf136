"""What `sed -i` makes of a file, as we read it: GNU's sed is the oracle."""

from __future__ import annotations

import shutil
import subprocess
from time import monotonic

import pytest

from patchkit.extensions.python_guards.sed_script import parse_sed
from patchkit.extensions.python_guards.text_edits import UnreadableEditError

TEXT = """import torch
x = torch.cuda(1)
    if layer.w13:
        y = cuda; z = cuda
# comment (flash/fused) [a] {b} + ?
a.b.c aXbXc

last line"""
SCRIPTS = [
    *(
        "s/cuda/npu/",
        "2s/cuda/npu/;4s/cuda/npu/",
        "s/cuda/npu/g",
        "/layer/d",
        "2,4d",
        "$d",
        "/^$/d",
    ),
    *("s/^/# /", "3,5s/^/        # /", r"s/a\.b/Z/", "s/a.b/Z/", r"s|torch\.cuda|a/b|", "4,2d"),
    *(r"s/\(torch\).cuda/\1.npu & x/", r"s/x\|y/Q/g", "s/[[:space:]]*$//", r"/if/a\    pass"),
    *("/if/a pass", r"/if/i\    pass", r"1i\import os", r"s/.*torch/\n&/", "/x/,/if/d", "/x/,2d"),
    *("2,/last/s/a/A/", r"s/(flash\/fused)/P/", r"s/\[a\]/B/", "s/{b} + ?/P/", "s/c$/END/"),
    *(r"s/^#\s*//", r"s/\bcuda\b/W/", r"s/\<y\>/W/", r"s/t\+/T/", r"s/t\{1,2\}/T/", "s/[.]/D/g"),
    *("s/[^a-z]/_/g", "s/a/b\\\nc/", "s/*/x/", "s/a*b/x/", "s/# comm.*/# x/ # note"),
    *("s/a,b/x/;s/import torch/import torch\\nimport os/", r"s/[\/]/S/", "s/[]x]/S/", "s/[^]x]/S/"),
    *(r"s,a\,b,x,", r"s/\t/T/", r"s/\//S/g", r"s/a\|aXb/Q/", "s/Torch/x/I", "s/]/q/"),
    *(
        r"s|a\|c|Q|",
        r"s/[a\]b/q/",
        "s/y = /&/",
        "/nothing/d",
        "s/cuda/\\&x/",
        "\n\ns/x/y/\n# end\n",
    ),
]
EXTENDED = [
    *(r"s/(torch)\.cuda/\1.npu/", "s/x|y/Q/g", "s/t+/T/", r"s/\(flash/P/", "s/^(x|y) = /Q/"),
    *(
        "s/a{1}/b/",
        r"s/(a|ab)(c|bcd)?/[\1]/",
        "s/()/x/",
        r"s/\{b\}/x/",
        r"s/ \+ \?/x/",
        "s/a|aX/Q/",
    ),
]
WHOLE = [r"s/x = torch.cuda(1)\n    if/Q/", r"s/\n/,/g", "s/import.*if/Q/", "s/^x/Q/", "s/$/E/"]
ALL = [((), s) for s in SCRIPTS] + [(("-E",), s) for s in EXTENDED] + [(("-z",), s) for s in WHOLE]


@pytest.mark.skipif(shutil.which("sed") is None, reason="no sed here")
@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_what_we_read_is_what_sed_does(end: str) -> None:
    text = TEXT + end
    for options, script in ALL:
        command = ["sed", "--sandbox", *options, "-e", script]
        done = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
        assert parse_sed(script, options).run(text).text == done.stdout.decode(), script


def test_the_lines_of_each_command_are_counted() -> None:
    edited = parse_sed("s/cuda/npu/;2s/torch/npu/;9d;/last/a x", ()).run(TEXT)
    assert edited.lines == ((2, 4), (2,), (), (8,))
    assert parse_sed("s/torch/x/g", ("-z",)).run(TEXT).lines == ((1, 2),)


@pytest.mark.parametrize(
    "script",
    [
        *("", "q", "y/a/b/", "2{s/c/C/}", "s/x", "s/a/b/w out", "s/a/b/e", "s/a/\\U&/", "s/a/\\3/"),
        *("1~2d", "2!d", "0,/x/d", "s//x/", "r file", "s/[/]/S/", "s/\\(/x/", "2,d", "s/a/b/gx"),
        *(
            "s/a\nb/c/",
            "s/[b/c/",
            "s/[[:b:]]/c/",
            "s/[:alpha:]/c/",
            "s/a\\{/b/",
            "s/a\\{b\\}/c/",
            "i ",
        ),
        *("s.a\\.b.Q.", "s/a/b/gg", "s\\a\\b\\", "s/a\\\nb/c/", "s/a\\{2,1\\}/b/"),
    ],
)
def test_what_is_not_known_is_refused(script: str) -> None:
    with pytest.raises(UnreadableEditError):
        parse_sed(script, ())


def test_what_seds_read_otherwise_is_not_exact() -> None:
    assert not parse_sed("s/x*/-/g", ()).exact
    assert not parse_sed(r"1a\ta", ()).exact or parse_sed(r"1a\ta", ()).run("x").text
    assert parse_sed("s/x/-/g", ()).exact


def test_a_pattern_without_end_is_ended() -> None:
    script, began = parse_sed(r"s/^\(\(a*\)*\)*b$/x/", ()), monotonic()
    try:
        script.run("a" * 40 + "c\n")
    except UnreadableEditError as error:
        assert "takes more than" in str(error)
    assert monotonic() - began < 30
