"""`tb-tidy serve`: the page of the TensorBoard tab without TensorBoard."""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path

import click

from tb_tidy_plugin.cli.exit_codes import INTERRUPTED
from tb_tidy_plugin.cli.places import PLACE, with_device, with_links, with_source_roots
from tb_tidy_plugin.plugin.allowed_hosts import LOOPBACK
from tb_tidy_plugin.plugin.listener import HOME, Token, address_of, listening
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.start import configuration_file
from tb_tidy_plugin.trace.remote import AnyPath
from tb_tidy_plugin.words.errors import NotFoundError
from tb_tidy_plugin.words.visible import visible

NOT_LOCAL = (
    "Other machines can reach this server. The connection is not encrypted, and anybody who knows the address can "
    "read the traces."
)


@click.command(short_help="Serve the page without TensorBoard.")
@click.argument("path", type=PLACE)
@click.option(
    "--host",
    default=HOME,
    show_default=True,
    metavar="ADDRESS",
    help="Listen on this address. Any other than the default lets other machines reach the server.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Listen on this port; by default a free one.")
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Also accept this host name, such as that of a proxy; can be repeated.",
)
@click.option("--open/--no-open", "opens", default=True, show_default=True, help="Open the page in a browser.")
@click.option("--benchmarks", is_flag=True, help="Let the page run benchmarks on this machine.")
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=(
        "A `tb-tidy.toml`, or a `pyproject.toml` with `[tool.tb-tidy]`. Default: the file in TB_TIDY_CONFIG, if any; "
        "the command does not search for other files."
    ),
)
@click.option("--no-cache", is_flag=True, help="Do not cache results.")
@with_device
@with_links
@with_source_roots
def serve(
    path: AnyPath,
    host: str,
    port: int,
    allowed_hosts: tuple[str, ...],
    opens: bool,
    benchmarks: bool,
    config: Path | None,
    no_cache: bool,
    follow_links: bool,
    source_roots: tuple[Path, ...],
    device: str,
) -> None:
    """Serve the page for PATH: a trace file, a run folder or a logdir.

    The page is the same as the TensorBoard tab, but does not need TensorBoard. The address contains a token, without
    which the server refuses requests. It picks up new traces by itself. Ctrl-C ends the server, with exit
    code 130.
    """
    if isinstance(path, Path) and not path.exists():
        raise NotFoundError(f"`{path}` does not exist.", "Check the path.")
    if device:
        _check_device(device, config)
    folder = str(path.absolute() if isinstance(path, Path) else path)
    token = Token()
    if not faulthandler.is_enabled():  # as in TensorBoard: a crash writes the stack of each thread to stderr
        with suppress(AttributeError, OSError, RuntimeError, ValueError):  # stderr is no file, or closed
            faulthandler.enable()
    with suppress(KeyboardInterrupt), listening(host, port) as listener:
        address = address_of(listener, host, token)
        click.echo(f"TorchTidy serves {visible(folder)} at {address}\nCtrl-C ends it.")
        if host not in LOOPBACK:
            click.echo(f"tb-tidy: {NOT_LOCAL}", err=True)
        if opens and _has_browser():
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

        from tb_tidy_plugin.plugin.server import ServerOptions, server_of  # while the browser starts

        wanted = ServerOptions(
            logdir=Logdir(folder, follow_links=follow_links),
            source_roots=source_roots,
            configuration=configuration_file("" if config is None else str(config)),
            cache="off" if no_cache else "",
            host=host,
            allowed_hosts=allowed_hosts,
            benchmarks=benchmarks,
            device=device,
        )
        with server_of(wanted, token, listener) as server:
            server.serve_forever()
    sys.exit(INTERRUPTED)  # nothing else ends the server


def _check_device(name: str, config: Path | None) -> None:
    """Raises a `TidyError` for an unknown name before the page opens."""
    from tb_tidy_plugin.configuration.devices import checked_device
    from tb_tidy_plugin.configuration.files import read_configuration

    file = configuration_file("" if config is None else str(config))
    checked_device(name, () if file is None else read_configuration(file).settings.devices, "`--device`")


def _has_browser() -> bool:
    """True if a window can open; a text browser would take over the terminal."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
