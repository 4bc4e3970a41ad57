"""Parts of pages in `docs/` that a program writes."""

from __future__ import annotations

from pathlib import Path


def write_part(path: Path, name: str, text: str) -> None:
    """Replaces what stands between the lines `<!-- name:start -->` and `<!-- name:end -->` of a page.

    Raises:
        ValueError: the page lacks one of them.
    """
    start_mark, end_mark = f"<!-- {name}:start -->", f"<!-- {name}:end -->"
    before, start, rest = path.read_text(encoding="utf-8").partition(start_mark)
    _, end, after = rest.partition(end_mark)
    if not start or not end:
        raise ValueError(f"{path} lacks {start_mark} or, after it, {end_mark}")
    path.write_text(f"{before}{start}\n\n{text.strip()}\n\n{end}{after}", encoding="utf-8")
