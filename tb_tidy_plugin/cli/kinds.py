"""The base of our own kinds of arguments, with any click: `click.ParamType` is generic since 8.4 only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click import ParamType as Kind
else:

    class Kind(click.ParamType):
        """A kind of argument, `Kind[type of the value]`."""

        def __class_getitem__(cls, _: object) -> type:
            return cls


__all__ = ["Kind"]
