"""Distinct texts and the answers of tests of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tb_tidy_plugin.trace import strings
from tb_tidy_plugin.trace.strings import KeptAnswers, answers_of, asked_once, numbers_where, remember_answers

TEXTS = ("aten::mm", "aten::add", "gemm", "aten::mm")


@pytest.fixture
def remembering() -> Iterator[None]:
    before = KeptAnswers.answers
    remember_answers()
    yield
    KeptAnswers.answers = before


def test_numbers_of_the_texts_for_which_a_test_holds() -> None:
    assert numbers_where(TEXTS, "aten::mm".__eq__).tolist() == [0, 3]
    assert numbers_where(TEXTS, re.compile("mm$").search).tolist() == [0, 2, 3]


@pytest.mark.usefixtures("remembering")
class TestRemembered:
    def test_the_answers_are_the_same(self) -> None:
        for pattern in ("mm$", "^aten", "nothing"):
            expected = [number for number, text in enumerate(TEXTS) if re.search(pattern, text)]
            assert numbers_where(TEXTS, re.compile(pattern).search).tolist() == expected
            assert numbers_where(TEXTS, re.compile(pattern).search).tolist() == expected

    def test_search_and_match_are_different_questions(self) -> None:
        pattern = re.compile("mm")
        assert numbers_where(TEXTS, pattern.search).tolist() == [0, 2, 3]
        assert numbers_where(TEXTS, pattern.match).tolist() == []

    def test_each_text_is_asked_once(self) -> None:
        answers = answers_of(re.compile("mm").search)
        assert [bool(answers(text)) for text in TEXTS] == [True, False, True, True]
        assert KeptAnswers.answers is not None
        assert [*KeptAnswers.answers.values()] == [{"aten::mm": True, "aten::add": None, "gemm": True}]

    def test_a_function_is_asked_once_for_each_argument(self) -> None:
        asked: list[str] = []

        def upper(text: str) -> str:
            asked.append(text)
            return text.upper()

        answers = asked_once(upper)
        assert [answers(text) for text in TEXTS] == [text.upper() for text in TEXTS]
        assert asked == [*dict.fromkeys(TEXTS)]

    def test_a_function_of_a_rule_is_asked_each_time(self) -> None:
        """It may be made for one profile, and would never be asked again."""
        wanted = "gemm".__eq__
        assert answers_of(wanted) is wanted

    def test_they_are_forgotten_before_they_take_much_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(strings, "MOST_ANSWERS", 5)
        answers = answers_of(re.compile("7").search)
        assert [number for number in range(100) if answers(str(number))] == [
            number for number in range(100) if "7" in str(number)
        ]
        assert KeptAnswers.answers is not None
        [kept] = KeptAnswers.answers.values()
        assert len(kept) <= 6


def test_a_process_that_reads_one_trace_keeps_none() -> None:
    search = re.compile("mm").search
    assert answers_of(search) is search
    assert asked_once(str.upper) is str.upper
