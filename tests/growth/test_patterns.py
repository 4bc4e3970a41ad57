"""Regular expressions that see names of a trace, of up to 16,384 characters: none may take the square of that."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import tb_tidy_plugin
from tb_tidy_plugin import profile, report, rules, sources, trace
from tb_tidy_plugin.profile.kernels import compiled_patterns
from tb_tidy_plugin.profile.ranks.collectives import COLLECTIVE_KINDS

LENGTH = 1000
MOST_GROWTH = 8.0  # for four times the text: 4 where time is proportional to it, 16 where it is its square
NOISE_S = 0.001
WORD = re.compile(r"[A-Za-z_:./#<,-]{2,}")
PLAIN = re.compile(r"(?:\\\W|[\w#:/<, -])*")
PIECES = ("a", "1", "_", " ", "(", "/", ".", "::", "(1)", "a(1): ", " of ", "\n", "1x", "a_1")
AT_THE_END = ("", "1", " ", "a/")


USED = re.compile(r"\b(\w+)\.(search|sub|find\w+|split|pattern|match|fullmatch)\b")
MATCHED = re.compile(r"matching\((\w+)\b")


def _used(code: str) -> dict[str, set[str]]:
    """The methods that are called on each name."""
    used = defaultdict[str, set[str]](set)
    for name, method in USED.findall(code):
        used[name].add(method)
    return used


def _patterns() -> Iterator[tuple[str, re.Pattern[str], str]]:
    """Each pattern of these packages by its place, with the method that it is used with; strings are searched for."""
    codes = [path.read_text() for path in sorted(Path(tb_tidy_plugin.__path__[0]).rglob("*.py"))]
    matched, used_anywhere = set(MATCHED.findall("\n".join(codes))), _used("\n".join(codes))
    for package in (profile, rules, sources, report, trace):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.rpartition(".")[2].startswith("_"):
                continue
            module = importlib.import_module(found.name)
            used_here = _used(inspect.getsource(module))
            for name, value in sorted(vars(module).items()):
                used = used_here if name.startswith("_") else used_anywhere
                place = f"{found.name.removeprefix('tb_tidy_plugin.')}.{name}"
                if isinstance(value, str) and name in matched:
                    yield place, re.compile(value.format("") if "{}" in value else value), "search"
                elif isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                    is_anchored = used[name] and used[name] <= {"match", "fullmatch"}
                    yield place, value, "fullmatch" if is_anchored else "search"
    yield from ((f"kernels, {pattern.pattern}", pattern, "search") for _, pattern in compiled_patterns())
    yield from ((f"collectives, {pattern.pattern}", pattern, "search") for _, pattern in COLLECTIVE_KINDS)


PATTERNS = {place: (pattern, method) for place, pattern, method in _patterns() if re.search(r"[*+]", pattern.pattern)}


def _took_s(pattern: re.Pattern[str], method: str, text: str, times: int = 1) -> float:
    took = []
    for _ in range(times):
        began = time.thread_time()
        getattr(pattern, method)(text)
        took.append(time.thread_time() - began)
    return min(took)


def _texts(pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Beginnings, and what is repeated behind them."""
    words = list(dict.fromkeys(WORD.findall(pattern.pattern)))[:8]
    pieces = [*PIECES, *(word + end for word in words for end in AT_THE_END)]
    beginning = re.sub(r"\\(\W)", r"\1", PLAIN.match(pattern.pattern.lstrip("^"))[0])  # type: ignore[index]
    yield from ((head, piece) for head in dict.fromkeys(["", beginning, *words[:2]]) for piece in pieces)


def _text(head: str, piece: str, length: int) -> str:
    return head + piece * (length // len(piece)) + "!"  # nothing ends so


def _growth(pattern: re.Pattern[str], method: str, head: str, piece: str, length: int) -> float:
    """How many times longer a text takes that is four times as long."""
    short, long = (_text(head, piece, size) for size in (length, 4 * length))
    return _took_s(pattern, method, long, 3) / max(_took_s(pattern, method, short, 3), NOISE_S / 20)


@pytest.mark.parametrize("place", PATTERNS)
def test_no_name_takes_its_square(place: str) -> None:
    pattern, method = PATTERNS[place]
    for head, piece in _texts(pattern):
        if _took_s(pattern, method, _text(head, piece, 4 * LENGTH)) > NOISE_S:
            growths = [_growth(pattern, method, head, piece, length) for length in (LENGTH, 2 * LENGTH)]
            assert min(growths) < MOST_GROWTH, f"{head!r}, and {piece!r} again and again: {growths}"
