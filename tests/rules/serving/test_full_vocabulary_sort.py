"""full-vocabulary-sort: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.serving.full_vocabulary_sort import FullVocabularySort

SORT = """
    ProfilerStep#1      0-1000
      aten::sort        1-20    dims=32x151936  types=float  kernel=radixSortKV@100-300 kernel=radixSortKV@300-600
"""


class TestReports:
    def test_a_sort_of_all_logits(self) -> None:
        (finding,) = findings(FullVocabularySort, draw(SORT, A100))
        assert finding.message == "`torch.sort` orders all 151,936 values of 32 requests, which takes 500 µs"


class TestSaves:
    def test_four_fifths_most_likely(self) -> None:
        assert saving_ns(FullVocabularySort, draw(SORT, A100)) == (0, 400_000, 450_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            pytest.param("32x151936", "32x16383", id="short rows"),
            pytest.param("32x151936", "8193x151936", id="no requests"),
            pytest.param("kernel=radixSortKV@100-300 kernel=radixSortKV@300-600", "", id="the host"),
        ],
    )
    def test_for(self, old: str, new: str) -> None:
        profile = draw(SORT.replace(old, new) + "      aten::mm 21-30 kernel=gemm@700-800\n", A100)
        assert matches_of(FullVocabularySort, profile) == ()
