"""The argument that names traces: a path on this machine, or an address such as `s3://bucket/run`."""

from __future__ import annotations

import os

import click

from tb_tidy_plugin.cli.kinds import Kind
from tb_tidy_plugin.trace.files import FOLLOW
from tb_tidy_plugin.trace.remote import AnyPath, path_or_url


class PlaceParameter(Kind[AnyPath]):
    """A path or an address, not accessed yet."""

    name = "path"

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> AnyPath:
        return path_or_url(value)


PLACE = PlaceParameter()

with_links = click.option(FOLLOW, is_flag=True, help="Follow links that lead out of the folder.")
"""Gives a command the option to follow links out of its folders, as `follow_links`."""
