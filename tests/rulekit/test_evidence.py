"""Evidence: what sentences make of it, and how a rule's class of it is found."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from msgspec.structs import replace

from tb_tidy_plugin.rulekit import Bytes, Match, Nanoseconds, Profile, Rule, Share, Sizes, Threshold
from tb_tidy_plugin.rulekit.evidence import evidence_names, names_in


class Copy(msgspec.Struct, frozen=True):
    size: Bytes
    time: Nanoseconds
    share: Share
    shape: Sizes
    operators: tuple[str, ...]

    @property
    def first(self) -> str:
        return self.operators[0]


COPY = Copy(Bytes(4096), Nanoseconds(1_250_000), Share(0.125), Sizes((64, 3)), ("aten::clone",))


class Copies(Rule[Copy]):
    code = "MY1"
    min_bytes = Threshold(2048, "smaller ones are quick")
    min_wait_ns = Threshold(1_500, "a shorter one is none")
    max_part = Threshold(0.8, "more is all of it")
    min_elements = Threshold(16_384, "fewer fit the cache")

    def detect(self, profile: Profile) -> Iterator[Match[Copy]]:
        raise NotImplementedError


class LargeCopies(Copies):
    code = "MY2"


class Plain(Rule):
    code = "MY3"

    def detect(self, profile: Profile) -> Iterator[Match]:
        raise NotImplementedError


def test_a_sentence_shows_fields_in_their_units_and_properties_as_words() -> None:
    text = "`{first}` copies {size} of {shape} in {time}, {share} of a step; {{}} stays"
    assert Copies().filled_in(text, COPY) == "`aten::clone` copies 4 KiB of 64×3 in 1.25 ms, 12.5 % of a step; {} stays"


def test_a_sentence_shows_thresholds_in_the_units_that_their_names_carry_as_the_user_has_set_them() -> None:
    text = "{min_bytes}, {min_wait_ns}, {max_part}, {min_elements}"
    assert Copies().filled_in(text, COPY) == "2 KiB, 1.5 µs, 80 %, 16,384"
    assert Copies({"min_bytes": 4096.0, "max_part": 1}).filled_in(text, COPY) == "4 KiB, 1.5 µs, 100 %, 16,384"


def test_a_sentence_without_names_needs_no_evidence() -> None:
    assert Plain().filled_in("It was here", None) == "It was here"


def test_a_sentence_cannot_name_what_is_not_there() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        Copies().filled_in("{nothing}", COPY)


def test_braces_in_what_is_shown_stay() -> None:
    assert Copies().filled_in("`{first}`", replace(COPY, operators=("{size}",))) == "`{size}`"


def test_the_names_that_sentences_may_use() -> None:
    assert evidence_names(Copy) == {"size", "time", "share", "shape", "operators", "first"}
    assert evidence_names(None) == set()
    assert Plain.names() == {"min_share"}
    assert Copies.names() == evidence_names(Copy) | {
        "min_bytes",
        "min_wait_ns",
        "max_part",
        "min_elements",
        "min_share",
    }
    assert names_in("{a}, {b} and {{c}}") == {"a", "b"}


@pytest.mark.parametrize(("rule", "evidence"), [(Copies, Copy), (LargeCopies, Copy), (Plain, None)])
def test_a_rule_names_the_class_of_its_evidence(rule: type[Rule], evidence: type | None) -> None:
    assert rule.evidence() is evidence


@pytest.mark.parametrize(("sizes", "text"), [((64, 3), "64×3"), ((1,), "1"), ((), ""), ((-1, 0), "-1×0")])
def test_sizes(sizes: tuple[int, ...], text: str) -> None:
    assert str(Sizes(sizes)) == text
