"""Changes of the user's own code, as in findings, `tb-tidy fix` and SARIF."""

from __future__ import annotations

from tb_tidy_plugin.report.value import Model

NEEDS_EXTRA = "Changes of your own code need LibCST: run `pip install 'tb-tidy-plugin[fix]'`."
"""The `reason` of `CodeFixes` if LibCST is not installed."""


NOT_MADE = "Run `tb-tidy fix` for this change in your own code."
"""The `reason` of `CodeFixes` in a report for the terminal or a comment, which shows no diff and so creates none."""


class Replacement(Model, frozen=True):
    """A region of a file, and the text that replaces it. Lines and columns are 1-based; the end is exclusive."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int
    text: str


class CodeFix(Model, frozen=True):
    """The change of one file that fixes one place of a finding.

    Attributes:
        finding: its id.
        file, line: the place; commands name the file as its repository does, the page as the recording does.
        saving_ns: expected saving of the whole finding per step; null if unknown.
        safety: `same results`, `same up to rounding` or `changes behaviour: …`.
        needs_review: true if the file alone cannot prove the change right; `check` then says what to check first.
        diff: unified; without carriage returns in reports, byte for byte in the answers of `tb-tidy fix` and `ask`.
        replacements: the same change by regions, in the order of the file.
    """

    finding: str
    rule: str
    file: str
    line: int
    saving_ns: int | None
    safety: str
    needs_review: bool
    check: str
    diff: str
    replacements: list[Replacement]


class CodeFixes(Model, frozen=True):
    """Changes that `tb-tidy fix` can make for a finding in the user's own files.

    Attributes:
        changes: one for each place whose change is known; several places may share one.
        reason: why a place has no change, as a sentence; null if each place has one.
    """

    changes: list[CodeFix]
    reason: str | None = None
