"""Writes `docs/lines.md`: `python -m tests.lines`."""

from __future__ import annotations

import sys
from importlib.metadata import version

from tests.lines.corpus import left_out, programs, results, shared_results
from tests.lines.page import is_met, page, shared_in, shared_section
from tests.support.recordings import ROOT, SHARED

PAGE = ROOT / "docs" / "lines.md"


def main() -> None:
    """Writes the page, and fails where a target is missed; without the shared recordings their section stays."""
    before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    folder = SHARED / "lines"
    shared = shared_section(list(shared_results(folder))) if folder.is_dir() else shared_in(before)
    found = results(programs(), lambda name: sys.stderr.write(f"{name}\n"))
    PAGE.write_text(page(found, left_out(), version("torch").partition("+")[0], shared), encoding="utf-8")
    sys.exit(0 if is_met(found) else "the targets are not met")


if __name__ == "__main__":
    main()
