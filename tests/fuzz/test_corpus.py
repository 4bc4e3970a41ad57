"""Texts that were found by fuzzing, each taken through everything again; and that what looks for faults sees some."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tb_tidy_plugin.trace import cached_columns
from tb_tidy_plugin.words.errors import TidyError
from tests.fuzz.corpus import CORPUS, Watch, corpus_of, distilled, steps_of
from tests.fuzz.harnesses import HARNESSES, Take
from tests.fuzz.members import broken, files, inflated
from tests.fuzz.tried import Tried

MOST_BYTES = 300_000
KNOWS_MEMORY = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="this system does not tell how much memory was taken"
)


@pytest.fixture(autouse=True)
def _columns_are_kept_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Harnesses keep the columns of small traces, too; the tests after these do not."""
    monkeypatch.setattr(cached_columns, "WORTH_KEEPING", cached_columns.WORTH_KEEPING)


@pytest.mark.parametrize("name", HARNESSES)
def test_no_text_of_the_corpus_is_a_fault(name: str, tmp_path: Path) -> None:
    harness, texts, said = HARNESSES[name], corpus_of(name), list[str]()
    tried = Tried(name, harness.prepare(tmp_path), harness.seeds()[:2], tmp_path / "found", said.append)
    for text in texts:
        tried.one(text)
    assert said == []
    assert tried.texts == len(texts) > 0


def test_the_corpus_is_small() -> None:
    sizes = [path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(sizes) < MOST_BYTES


class Faulty:
    """What is taken here is refused, used, and in three ways wrong."""

    def __call__(self, text: bytes) -> int:
        if text.startswith(b"refused"):
            raise TidyError("No.", "Yes.")
        if text.startswith(b"silent"):
            raise TidyError("", "")
        if b"boom" in text:
            raise KeyError("boom")
        if b"slow" in text:
            sum(range(20_000_000))
        if b"large" in text:
            self.held = bytearray(200 << 20)
            self.held = bytearray()
        sum(range(20_000))
        return len(text)


def tried_with(take: Take, texts: Sequence[bytes], found: Path) -> tuple[Tried, list[str]]:
    said: list[str] = []
    tried = Tried("faulty", take, [b"a text that is as usual as any other"], found, said.append)
    for text in texts:
        tried.one(text)
    return tried, said


class TestWhatIsAFault:
    def test_refusing_is_none(self, tmp_path: Path) -> None:
        tried, said = tried_with(Faulty(), [b"refused", b"used"], tmp_path)
        assert (tried.texts, tried.used, tried.faults, said) == (2, 1, {}, [])

    def test_any_other_error_is_one_and_its_text_made_short(self, tmp_path: Path) -> None:
        tried, said = tried_with(Faulty(), [b"x" * 500 + b"boom" + b"y" * 500], tmp_path)
        (name,) = tried.faults
        assert name.startswith("faulty-KeyError-test_corpus-")
        assert (tmp_path / name).read_bytes() == b"boom"
        assert said[1] == f"  python -m tests.fuzz --what faulty --replay {tmp_path / name}"

    @pytest.mark.parametrize("text", [b"silent", b"slow", pytest.param(b"large", marks=KNOWS_MEMORY)])
    def test_a_refusal_without_a_word_is_one_and_so_are_time_and_memory(self, tmp_path: Path, text: bytes) -> None:
        tried, _ = tried_with(Faulty(), [text], tmp_path)
        (name,) = tried.faults
        assert name.startswith("faulty-UnsoundError-tried-")

    def test_one_text_of_each_is_left(self, tmp_path: Path) -> None:
        tried, said = tried_with(Faulty(), [b"boom and more", b"more and boom, and more", b"boom"], tmp_path)
        assert (len(tried.faults), len(said)) == (1, 2)


def test_gz_members_are_read_as_zlib_has_them() -> None:
    """Else a difference would be no fault of ours."""
    text = b"some text " * 100
    *packed, plain = files([text])
    assert plain == text
    assert {inflated(each) for each in packed} == {text, b""}
    make = random.Random(5)
    assert {inflated(broken(packed[0], packed, make)) for _ in range(200)} >= {None, text}


def test_the_fewest_texts_that_run_the_same_are_kept() -> None:
    def take(text: bytes) -> int:
        if text == b"refused":
            raise TidyError("No.", "Yes.")
        return len(text)

    watch = Watch((__file__,))
    texts = [(text, steps_of(watch, take, text)) for text in (b"used, and long", b"used", b"refused", b"refused")]
    usual = steps_of(watch, take, b"as usual")
    assert distilled(texts, usual) == [b"refused"]
    assert distilled(texts[:2], usual) == []
    assert set(distilled(texts, set())) == {b"refused", b"used"}
