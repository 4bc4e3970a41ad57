"""How much a trace may hold: a small file can be written that would inflate beyond any memory."""

from __future__ import annotations

from dataclasses import dataclass

from tb_tidy_plugin.errors import TraceError

GB = 10**9
FREE_BYTES = 64 << 20
"""So much text is read whatever it was packed into: short and regular recordings shrink a hundredfold."""

CONFIGURED = "`[limits]` in the configuration, which TensorBoard takes by `--torchtidy_config`"

LONGEST_NAME = 1 << 14
"""Characters of a name that are kept; the longest of a real kernel are some 8,000."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one trace file; where it is beyond one, it is refused as a whole.

    Attributes:
        text_bytes: of JSON, inflated.
        inflation: how many times the size of the gz file the text may have.
    """

    text_bytes: float = 16 * GB
    inflation: float = 300.0

    def check(self, text_bytes: int, packed_bytes: int | None = None) -> None:
        """Looks at what was read so far; `packed_bytes` of the file, None where it is not compressed.

        Raises:
            TraceError: it is beyond a limit; says which, and how that is raised.
        """
        if text_bytes > self.text_bytes:
            raise TraceError(
                f"The trace holds more than {self.text_bytes / GB:g} GB of text, the limit `max-text-gb`.",
                f"Record fewer steps, or raise it: `--max-text-gb`, or {CONFIGURED}.",
            )
        if packed_bytes is not None and text_bytes > max(FREE_BYTES, self.inflation * packed_bytes):
            raise TraceError(
                f"The gz file inflates more than {self.inflation:g} times, the limit `max-inflation`; "
                "recordings inflate 10 to 20 times.",
                f"If you trust the file, raise it: `--max-inflation`, or {CONFIGURED}.",
            )


USUAL = Limits()
