"""A user's own rule, as a file in a test's folder."""

from __future__ import annotations

import sys
from pathlib import Path

from tb_tidy_plugin.configuration.user_rules import LOADED_AS
from tests.support import made_up_rule


def write_rule(folder: Path, name: str = "slow_multiplication.py", *changes: tuple[str, str]) -> Path:
    """Writes the made-up rule, which finds every multiplication, with parts of its text replaced."""
    text = Path(made_up_rule.__file__).read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def forget_user_rules() -> None:
    """Makes the next command load user rules as if for the first time."""
    for name in [name for name in sys.modules if name.startswith(LOADED_AS)]:
        del sys.modules[name]
