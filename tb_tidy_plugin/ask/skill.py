"""The skill file: how an assistant finds the cause of a slow step with the questions."""

from __future__ import annotations

from pathlib import Path

SKILL = Path(__file__).with_name("skill.md")
END_OF_SHORT = "\n## "


def skill_text() -> str:
    """The whole file, as Markdown."""
    return SKILL.read_text(encoding="utf-8")


def in_short() -> str:
    """The text between its title and its first heading."""
    return skill_text().partition(END_OF_SHORT)[0].partition("\n# ")[2].partition("\n")[2].strip()
