"""Untrusted text as it may be shown: nothing in it steers a terminal or shows other text than there is."""

from __future__ import annotations


def visible(text: str, stand_in: str = "\ufffd") -> str:
    """`text` with a `stand_in` for each character that is not to be seen.

    These are control characters, those that turn the direction of writing, line and paragraph separators, halves of
    surrogate pairs, and whatever else Unicode calls neither printable nor a space.
    """
    return text if text.isprintable() else "".join(each if each.isprintable() else stand_in for each in text)
