"""What configurations and sources are broken with, and configurations to begin with."""

from __future__ import annotations

import re

from tests.fuzz.mutations import Words

LINE_MARKS = [b"\n", b"\r", b"\r\n", b"\x0c", b"\t", b"\x00", b"\x7f", b"\xff", b"\xef\xbb\xbf", b"\xe2\x80\xa8"]

TOML = Words(
    atoms=re.compile(rb'"""(?:.|\n)*?"""|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[\w.+-]+'),
    groups=(
        b"""select ignore rules thresholds limits per-path-ignores tool tb-tidy tool.tb-tidy max-text-gb max-inflation
        min-share zero-grad-memset cat-in-loop nothing a.b.c "" "a\\u0020b" thresholds.cat-in-loop.min-share""".split(),
        b"""0 -0 +1 01 1_000 0x1F 0o17 0b1 1e400 -1e400 inf -inf nan 1. -5 9223372036854775808 1e3 1.5 true false
        1979-05-27 1979-05-27T07:32:00Z 07:32:00 1979-13-40""".split(),
        [
            b"1" * 400,
            b"1" * 5000,
            b"0x" + b"f" * 5000,
            b"[]",
            b"{}",
            b"[[]]",
            b"[1, 'a']",
            b"{ a = 1 }",
            b"{ a.b = {} }",
        ],
        [b"[" * 300 + b"]" * 300, b"{a=" * 300 + b"1" + b"}" * 300, b'"x' + b"y" * 300 + b'"'],
        b"""'ALL' 'TT2' "TT302" 'python_loops' "zero-grad-memset" "zero-grad-memst" "tests/**" "**" "checks/rule.py"
        "../rule.py" "no_such_point" "\\u0000" "\\ud800" "\\U0010ffff" "caf\xc3\xa9" "\xff" '''""".split(),
    ),
    marks=[
        *b"""[ ] [[ ]] { } = . , " ' \"\"\" # \\""".split(),
        *LINE_MARKS,
        b" = ",
        b"\n[limits]\n",
        b"\n[tool.tb-tidy]\n",
    ],
)

CONFIGURATIONS = (
    b"",
    b'select = ["TT2", "python_loops"]\nignore = ["zero-grad-memset"]\n',
    b'per-path-ignores = { "tests/**" = ["ALL"], "a/*.py" = ["TT302", "optimizer"] }\n',
    b"[thresholds.zero-grad-memset]\nmin-share = 0.02\n\n[thresholds.cat-in-loop]\nmin-share = 1\n",
    b"limits = { max-text-gb = 16, max-inflation = 300.5 }\n",
    b'rules = ["checks/rule.py", "no_such_entry_point"]\n',
    b'[tool.tb-tidy]\nselect = ["ALL"]\n\n[tool.other]\nkey = 1979-05-27\n',
    b"[tool]\ntb-tidy = { ignore = [\"TT302\"] }\n# a comment\n\"quoted key\" = '''\nlines'''\n",
)

CODINGS = b"latin-1 utf-8 utf-7 utf-16 hex undefined raw_unicode_escape cp1252 shift_jis nothing".split()

PYTHON = Words(
    atoms=re.compile(rb'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|\w+'),
    groups=(
        b"""if else for while try except finally with return yield await lambda not and or in is break continue match
        case del assert def class async global import pass raise""".split(),
        b"""torch cat rows model zeros self _ __class__ range super item 0 -1 1e999 0x 1_ None True ... rows[0]
        rows[:,None,...] (rows) *rows **rows rows@rows (y:=rows) rows.item() {r:r} {*rows} f'{rows}'
        f"{rows!r:>{rows}}" b'\\xff' rb'' '' "\\N{DASH}" "\\ud800" \"\"\" '\xff' '\xed\xa0\x80'""".split(),
        [
            b"lambda r: r",
            b"await rows",
            b"(yield)",
            b"rows if rows else rows",
            b"[r for r in rows]",
            b"{r: r for r in r}",
        ],
        [b"(" * 90 + b"rows" + b")" * 90, b"[" * 150 + b"]" * 150, b"-" * 300 + b"rows", b"not " * 300 + b"rows"],
        [b"rows" + b".t()" * 200, b" + ".join([b"rows"] * 300), b"x" * 300, b"1" * 5000],
    ),
    marks=[
        *b"""( ) [ ] { } : , ; = == += @ -> # \\ ' \"\"\"""".split(),
        *LINE_MARKS,
        b"    ",
        b" ",
        b"\x1a",
        *(b"# -*- coding: " + coding + b" -*-\n" for coding in CODINGS),
    ],
)
