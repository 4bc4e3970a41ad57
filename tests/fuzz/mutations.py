"""Small traces, real and written by hand, and ways to break them."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from tests.support.recordings import ROOT, SHARED
from tests.support.written import event, kineto_text

EVENTS_IN_A_SEED = 6
SEEDS_IN_A_TRACE = 6

NUMBERS = (
    b"0",
    b"-0",
    b"-1",
    b"00",
    b"01",
    b"1.",
    b".5",
    b"1.5",
    b"1e3",
    b"1E-3",
    b"1e999",
    b"-",
    b"1.0005",
    b"0.0010",
    b"9007199254740993",
    b"9223372036854775807",
    b"9223372036854775808",
    b"123456789012345678",
    b"1234567890123456789",
    b"18446744073709551616",
    b"8796093022207.999",
    b"8796093022208",
    b"3074457345618257.999",
    b"3074457345618258",
    b"1706112000000123.457",
    b"-5.25",
    b"NaN",
    b"Infinity",
)
STRINGS = (
    b'""',
    b'"7"',
    b'"-7"',
    b'"007"',
    b'"0x0"',
    b'"7.0"',
    b'"1e2"',
    b'"+7"',
    b'"NaN"',
    b'"sNaN7"',
    b'"-Infinity"',
    b'"1e999"',
    b'"a\\"b"',
    b'"\\u0041"',
    b'"\\ud83d\\ude00"',
    b'"\\ud800"',
    b'"\\udc00"',
    b'"\\q"',
    b'"\\"',
    b'"caf\xc3\xa9"',
    b'"caf\xe9"',
    b'"\xed\xa0\x80"',
    b'"a\x01b"',
    b'"a\x00b"',
    b'"a\nb"',
    b'"},{"',
    b'"]"',
    b'"\xff"',
    b'"' + b"x" * 40 + b'"',
)
VALUES = (
    b"null",
    b"true",
    b"false",
    b"nul",
    b"{}",
    b"[]",
    b"[[]]",
    b"[1,]",
    b"[,1]",
    b"{,}",
    b'{"a":1,}',
    b'{"a"}',
    b"[1 2]",
    b"[" * 70 + b"]" * 70,
    b'{"a":' * 61 + b"1" + b"}" * 61,
    b'[{"a":[1,{"b":"c"}]},[],{}]',
)
KEYS = (
    b'"ph"',
    b'"cat"',
    b'"name"',
    b'"pid"',
    b'"tid"',
    b'"ts"',
    b'"dur"',
    b'"id"',
    b'"args"',
    b'"External id"',
    b'"external id"',
    b'"correlation"',
    b'"Ev Idx"',
    b'"Sequence number"',
    b'"Fwd thread id"',
    b'"Python id"',
    b'"Python parent id"',
    b'"Input Dims"',
    b'"Input type"',
    b'"Concrete Inputs"',
    b'"device"',
    b'"stream"',
    b'"bytes"',
    b'"traceEvents"',
    b'"\\u0074s"',
    b'"Ts"',
    b'"\xff"',
)
MARKS = (
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b'"',
    b"\\",
    b"\x00",
    b"\x1f",
    b"\x7f",
    b"\xff",
    b" ",
    b"\n",
    b"\t",
    b"\r",
    b"\x0c",
    b"},{",
    b"\n  },\n  {",
    b"\n  ],\n",
    b'"traceEvents": [',
    b"\xef\xbb\xbf",
)
ATOM = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null')
"""A string, a number or a word: what a mutation replaces as a whole, so that most results still are JSON."""


def seeds(recorded: bool = True) -> list[bytes]:
    """Small traces: by hand, and pieces of recorded ones, where those are there."""
    written = [
        kineto_text([event("aten::mm", 10.5, 3, args={"External id": 5, "Ev Idx": 9}), event("aten::add", 20, 1.25)]),
        json.dumps({"traceEvents": [event("a", 1, 2, args={"x": [{"y": {}}, 1.5, "},{"]})], "traceName": "a]},{"}),
        json.dumps(
            [event("k", 1706112000000123, 2, cat="kernel", id="x", args={"stream": "7", "Python parent id": None})]
        ),
        '{"traceEvents":[]}',
    ]
    paths = sorted(SHARED.glob("traces/*/*.gz")) + sorted(ROOT.glob("sample_runs/*/*/*.gz")) if recorded else []
    return [text.encode() for text in written] + [piece for path in paths for piece in _pieces_of(path)]


def _pieces_of(path: Path) -> Iterator[bytes]:
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    for start in range(0, len(events), max(EVENTS_IN_A_SEED, len(events) // SEEDS_IN_A_TRACE)):
        chosen = events[start : start + EVENTS_IN_A_SEED]
        yield kineto_text(chosen).encode()
        yield json.dumps({"traceEvents": chosen}, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Words:
    """What a language is broken with: `atoms` are replaced as a whole, by one of `groups`; `marks` are put anywhere."""

    atoms: re.Pattern[bytes]
    groups: Sequence[Sequence[bytes]]
    marks: Sequence[bytes]


JSON = Words(ATOM, (NUMBERS, STRINGS, VALUES, KEYS), MARKS)

Change: TypeAlias = Callable[[bytes, Sequence[bytes], random.Random], bytes]
"""A text, others of its kind, and what decides: the text with one thing wrong."""


def mutated(text: bytes, others: Sequence[bytes], make: random.Random, words: Words = JSON) -> bytes:
    """`text` with a few things wrong."""
    changes: Sequence[Change] = (
        partial(_atom_replaced, words),
        partial(_atom_replaced, words),
        partial(_mark_put, words),
        *ANYWHERE,
    )
    for _ in range(make.choice((1, 1, 1, 2, 3, 8))):
        text = make.choice(changes)(text, others, make)
    return text


def _atom_replaced(words: Words, text: bytes, others: Sequence[bytes], make: random.Random) -> bytes:
    atoms = list(words.atoms.finditer(text))
    if not atoms:
        return text
    chosen = make.choice(atoms)
    new = make.choice(make.choice(words.groups))
    return text[: chosen.start()] + new + text[chosen.end() :]


def _mark_put(words: Words, text: bytes, others: Sequence[bytes], make: random.Random) -> bytes:
    at = make.randint(0, len(text))
    return text[:at] + make.choice(words.marks) + text[at:]


def _span_gone(text: bytes, others: Sequence[bytes], make: random.Random) -> bytes:
    start, end = _span(text, make)
    return text[:start] + text[end:]


def _span_doubled(text: bytes, others: Sequence[bytes], make: random.Random) -> bytes:
    start, end = _span(text, make)
    return text[:end] + text[start:end] * make.choice((1, 1, 2, 30)) + text[end:]


def _byte_changed(text: bytes, others: Sequence[bytes], make: random.Random) -> bytes:
    at = make.randint(0, max(0, len(text) - 1))
    return text[:at] + bytes([make.randrange(256)]) + text[at + 1 :]


def _spliced(text: bytes, others: Sequence[bytes], make: random.Random) -> bytes:
    other = make.choice(others)
    return text[: make.randint(0, len(text))] + other[make.randint(0, len(other)) :]


def _span(text: bytes, make: random.Random) -> tuple[int, int]:
    start = make.randint(0, len(text))
    return start, min(len(text), start + make.choice((1, 2, 7, 30, 200)))


ANYWHERE: Sequence[Change] = (_span_gone, _span_doubled, _byte_changed, _spliced)
"""What breaks bytes of any kind."""
