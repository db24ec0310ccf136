"""Files in, files out: edits to the byte, and what must never be written."""

from __future__ import annotations

from typing import Any

import pytest

from patchkit.errors import BadInputError
from patchkit.extensions.recipes.run import RecipeRun
from patchkit.model.finding import Severity
from tests.extensions.recipes.kitchen import DROP, recipe_of

CALL: dict[str, Any] = {"id": "call", "rule": {"pattern": "old($$$ARGS)"}, "fix": "new($$$ARGS)"}


def run(rule: dict[str, Any], data: bytes, path: str = "src/a.py") -> RecipeRun:
    return recipe_of(rule).run({path: data})


def result(rule: dict[str, Any], data: bytes) -> bytes:
    ran = run(rule, data)
    assert ran.findings == ()
    return ran.changed["src/a.py"]


def codes(ran: RecipeRun) -> list[str]:
    return [each.code for each in ran.findings]


# -- bytes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"@fuser\ndef f():\n    pass\n",
        b"\n\n\n@fuser\ndef f(): pass\n",
        "\ufeff@fuser\ndef f(): pass\n".encode(),
        "\ufeff\n# é€😀\n@fuser\ndef f(): pass\n".encode(),
        b"# \xe9\n@fuser\ndef f(): pass\n",
        b"x = 1\r\n@fuser\r\ndef f():\r\n    pass\r\n",
        b"class A:\n    @fuser  # why\n    @other\n    def f(self): pass",
        b"class A:\n\t@a\n\t@fuser\n\tdef f(self): pass\n",
    ],
)
def test_a_line_is_removed_and_no_other_byte(data: bytes) -> None:
    lines = data.splitlines(keepends=True)
    bom = b"\xef\xbb\xbf" if lines[0].startswith(b"\xef\xbb\xbf@fuser") else b""
    expected = bom + b"".join(line for line in lines if b"@fuser" not in line)
    assert result(DROP, data) == expected


def test_arguments_are_brought_as_they_are_written() -> None:
    data = "x = old(1,  b = 'é',\n        *c)  # old(1)\n".encode()
    assert result(CALL, data) == data.replace(b"= old", b"= new")


def test_what_is_remembered_of_a_file_is_of_that_recipe_path_and_contents() -> None:
    one, other = recipe_of(CALL), recipe_of({**CALL, "fix": "newer($$$ARGS)"})
    tree = {"src/a.py": b"old(1)\n", "src/b.py": b"old(2)\n", "src/c.py": b"new(3)\n"}
    edited = {**tree, "src/a.py": b"old(4)\n", "src/b.py": tree["src/a.py"]}
    for _ in range(2):
        assert one.run(tree).changed == {"src/a.py": b"new(1)\n", "src/b.py": b"new(2)\n"}
        assert other.run(tree).changed["src/a.py"] == b"newer(1)\n"
        ran = one.run(edited)
        assert ran.changed == {"src/a.py": b"new(4)\n", "src/b.py": b"new(1)\n"}
        assert [each.place for each in ran.sites] == ["src/a.py:1", "src/b.py:1"]


INSIDE_IF = {"inside": {"kind": "if_statement", "stopBy": "end"}}


def test_a_fix_of_several_lines_is_set_in() -> None:
    rule = {
        "id": "guard",
        "rule": {"pattern": "launch($A)", "not": INSIDE_IF},
        "fix": "if ready:\n    launch($A)",
    }  # fmt: skip
    data = b"def f():\r\n    launch(1)\r\n"
    assert result(rule, data) == b"def f():\r\n    if ready:\r\n        launch(1)\r\n"


def test_a_block_moves_as_a_block() -> None:
    matcher = {"pattern": "with lock: $BODY", "kind": "with_statement"}
    rule = {
        "id": "guard",
        "rule": matcher,
        "fix": "with lock:\n    with other:\n        $BODY",
        "constraints": {"BODY": {"kind": "block"}},
    }
    data = b"with lock:\n    a()\n\n    b()\n"
    ran = run(rule, data)
    assert codes(ran) == ["recipe-not-idempotent"]  # it matches what it wrote
    guarded = {**matcher, "not": {"has": {"pattern": "other", "stopBy": "end"}}}
    made = result({**rule, "rule": guarded}, data)
    assert made == b"with lock:\n    with other:\n        a()\n\n        b()\n"


# -- scope, counts, allowances ---------------------------------------------------------------


def test_a_rule_looks_at_code_in_its_scope_and_not_at_what_only_quotes_it() -> None:
    data = b"@fuser\ndef f(): pass\n"
    files = {"src/a.py": data, "src/README.md": data, "src/tool": data}
    elsewhere = {"other/a.py": data, "src/deep/b.py": data}
    ran = recipe_of({**DROP, "files": ["src/*", "src/tool"]}).run(files | elsewhere)
    assert list(ran.changed) == ["src/a.py", "src/tool"]
    word = {"id": "word", "find": "fuser", "replace": "x"}
    assert len(recipe_of(text=(word,)).run(files).changed) == 3


@pytest.mark.parametrize(
    ("expect", "count", "code"),
    [(2, 2, []), (2, 3, ["recipe-count"]), (">= 2", 3, []), (">= 2", 1, ["recipe-count"]),
     (">= 1", 0, ["recipe-dead-rule"]), (0, 0, [])],
)  # fmt: skip
def test_counts(expect: int | str, count: int, code: list[str]) -> None:
    data = b"@fuser\ndef f(): pass\n" * count
    assert codes(run({**DROP, "expect": expect}, data)) == code


@pytest.mark.parametrize("expect", [0, 1, ">= 0", ">= 1"])
def test_files_that_are_gone_are_an_error_unless_they_may_be(expect: int | str) -> None:
    """A rule that looks at no file holds whatever becomes of the code."""
    rule = {**DROP, "expect": expect, "files": ["gone/**"]}
    (finding,) = run(rule, b"x = 1\n").findings
    assert (finding.code, finding.severity) == ("recipe-files", Severity.ERROR)
    assert "no file is there that gone/** names" in finding.what
    assert codes(run({**rule, "optional": "only in 2.x"}, b"x = 1\n")) == []


def test_an_optional_rule_is_held_to_the_files_that_are_there() -> None:
    assert codes(run({**DROP, "optional": "only in 2.x"}, b"x = 1\n")) == ["recipe-dead-rule"]


def test_allowed_sites_stay_and_do_not_count() -> None:
    data = b"class A:\n    @fuser\n    def f(self): pass\n    @fuser\n    def g(self): pass\n"
    allow = [{"path": "src/*.py", "within": "A.f", "reason": "measured: faster"}]
    ran = run({**DROP, "allow": allow, "expect": 1}, data)
    assert ran.findings == ()
    assert ran.changed["src/a.py"] == data.replace(b"    @fuser\n    def g", b"    def g")
    assert [(site.within, site.line, site.allowed is not None) for site in ran.sites] == [
        ("A.f", 2, True), ("A.g", 4, False),
    ]  # fmt: skip
    unused = [*allow, {"path": "src/b.py", "reason": "gone since"}]
    assert codes(run({**DROP, "allow": unused}, data)) == ["recipe-allowance"]


def test_a_rule_without_a_fix_only_looks() -> None:
    rule = {key: value for key, value in DROP.items() if key != "remove"}
    ran = run({**rule, "expect": 1}, b"@fuser\ndef f(): pass\n")
    assert (ran.findings, dict(ran.changed), ran.count("drop-fuser")) == ((), {}, 1)


# -- what must never be written --------------------------------------------------------------


def test_edits_of_two_rules_overlap() -> None:
    other = {"id": "one", "rule": {"pattern": "one"}, "fix": "two"}
    ran = recipe_of(CALL, other).run({"src/a.py": b"old(one)\n"})
    assert "call and one" in ran.fatal[0].what


def test_a_rule_that_edits_its_own_result() -> None:
    ran = run({"id": "grow", "rule": {"pattern": "f($A)"}, "fix": "f(g($A))"}, b"f(1)\n")
    assert codes(ran) == ["recipe-not-idempotent"]
    assert ran.fatal[0].where == "src/a.py:1"


def test_a_result_that_does_not_parse() -> None:
    ran = run({"id": "bad", "rule": {"pattern": "old($A)"}, "fix": "new($A"}, b"x = old(1)\n")
    assert codes(ran) == ["recipe-does-not-parse"]
    # what tree-sitter takes and Python does not
    ran = run({"id": "bad", "rule": {"pattern": "old($A)"}, "fix": "(yield)"}, b"x = old(1)\n")
    assert codes(ran) == ["recipe-does-not-parse"]


def test_a_file_that_did_not_parse_before_may_be_edited() -> None:
    data = b"print 'python 2'\n@fuser\ndef f(): pass\n"
    assert result(DROP, data) == b"print 'python 2'\ndef f(): pass\n"


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"kind": "nonsense"}, "Kind `nonsense` is invalid"),
        ({"regex": "(", "kind": "call"}, "unclosed group"),
    ],
)
def test_what_ast_grep_does_not_take_is_told_at_the_rule(rule: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInputError, match=r"x\.recipe\.yml:\d+: bad: ast-grep does") as e:
        run({"id": "bad", "rule": rule}, b"x = call(1)\n")
    assert said in str(e.value)


def test_a_string_of_several_lines_is_not_moved() -> None:
    data = b"x = old(\n    '''a\n    b''',\n    c,\n    f(1,\n      2),\n)\n"
    rule = {**CALL, "rule": {"pattern": "old($$$A)"}, "fix": "new($$$A)"}
    made = result(rule, data)
    assert b"'''a\n    b'''" in made  # the same string
    guard = {"id": "guard", "rule": {"pattern": "launch($A)", "not": INSIDE_IF}}
    data = b"launch(f('''\n  a {x}\n''',\n  f'''{y}\n z'''))\n"
    made = result({**guard, "fix": "if ready:\n    launch($A)"}, data)
    assert made == (b"if ready:\n    launch(f('''\n  a {x}\n''',\n      f'''{y}\n z'''))\n")


def test_a_variable_that_stands_for_nothing_is_no_empty_text() -> None:
    rule = {
        "id": "h",
        "rule": {"any": [{"pattern": "f($A)"}, {"pattern": "g($B)"}]},
        "fix": "h($A)",
    }
    assert result(rule, b"f(1)\n") == b"h(1)\n"
    with pytest.raises(BadInputError, match=r"h: \$A stands for nothing at src/a.py:2, and fix"):
        run(rule, b"f(1)\ng(1)\n")


# -- text ------------------------------------------------------------------------------------


def test_text_rules() -> None:
    find = {"id": "base", "find": "FROM cuda:12\n", "replace": "FROM cann:8.5\n", "expect": 1}
    regex = {"id": "pip", "regex": r"^RUN pip install (\w+)==\d+$", "replace": r"RUN uv add \1"}
    recipe = recipe_of(text=(find, regex))
    ran = recipe.run({"src/Dockerfile": b"FROM cuda:12\r\nRUN pip install x==1\r\n"})
    assert ran.findings[0].code == "recipe-dead-rule"  # $ is before \n, not before \r
    ran = recipe.run({"src/Dockerfile": b"FROM cuda:12\nRUN pip install x==1\n"})
    assert ran.changed == {"src/Dockerfile": b"FROM cann:8.5\nRUN uv add x\n"}
    assert ran.findings == ()


def test_a_found_text_of_several_lines_follows_the_file() -> None:
    rule = {"id": "a", "find": "one\ntwo\n", "replace": "three\n"}
    ran = recipe_of(text=(rule,)).run({"src/a.txt": b"zero\r\none\r\ntwo\r\n"})
    assert ran.changed == {"src/a.txt": b"zero\r\nthree\r\n"}


def test_binary_files_are_left_alone() -> None:
    rule = {"id": "a", "find": "one", "replace": "two", "expect": 0}
    assert recipe_of(text=(rule,)).run({"src/a.bin": b"\0one"}).changed == {}
