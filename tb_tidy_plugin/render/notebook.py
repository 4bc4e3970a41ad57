"""A page of HTML as the output of a notebook's cell, in a frame, so that neither affects the look of the other."""

from __future__ import annotations

import html

import msgspec


class Cell(msgspec.Struct, frozen=True):
    """A page that a notebook shows in a frame of `height_px`; it runs no script, and opens links beside the frame.

    `title` stands for it where only text is shown: in a terminal, and in the plain text that a notebook stores.
    """

    page: str
    height_px: int
    title: str = "TorchTidy"

    def __repr__(self) -> str:
        return f"<{self.title}>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe sandbox="allow-popups" style="width: 100%; height: {self.height_px:d}px; border: 0" '
            f'title="TorchTidy" srcdoc="{html.escape(self.page)}"></iframe>'
        )
