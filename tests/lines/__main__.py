"""Writes `docs/lines.md`: `python -m tests.lines`."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.lines.compiled_page import are_exact, recordings, section, size_of
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
    with TemporaryDirectory(prefix="torchtidy-lines-") as made:
        kernels = recordings(Path(made))
        compiled = section(kernels, size_of(Path(made, "cold")))
    torch_version = version("torch").partition("+")[0]
    PAGE.write_text(page(found, left_out(), torch_version, compiled, shared), encoding="utf-8")
    sys.exit(0 if is_met(found) and are_exact(kernels) else "the targets are not met")


if __name__ == "__main__":
    main()
