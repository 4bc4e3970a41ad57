"""The report as JSON: the public contract of `tb-tidy check --format json`."""

from __future__ import annotations

import msgspec

from tb_tidy_plugin.report.model import Report


def to_json(report: Report) -> str:
    """One JSON object, indented, with a final newline; `msgspec.json.decode(…, type=Report)` reads it back."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"
