"""Every view in Firefox: `python -m tests.browser.firefox [FOLDER]`, or `make firefox`.

Playwright drives only a Firefox of its own build; this drives the one that is installed, over WebDriver BiDi. Each view
has to show its text, to fit its window at 1280 and 390 px, and to leave the console empty of errors and warnings; the
timeline has to move under the wheel. Pictures go to the folder, `build/firefox` where none is named.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

from tb_tidy_plugin.plugin.listener import HOME, Token, address_of, listening
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.server import ServerOptions, server_of
from tests.browser.test_accessibility import TIDY, UNTIDY, VIEWS
from tests.support.recorded_ranks import record
from tests.support.recordings import ROOT

FIREFOX = os.environ.get("FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox") or ""
LISTENING = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
START_S, LIMIT_S = 60, 60
SIZES = ((1280, 800), (390, 800))
SETTLED_S = 1.0
FOLDER = ROOT / "build" / "firefox"
IN_A_LIST = {"findings": "Passed checks", "no findings": "Passed checks"}
"""Texts of views of which a narrow window shows the list alone."""

WHEEL = """() => {
  const canvas = document.querySelector('main canvas.timeline-canvas');
  const picture = canvas.toDataURL();
  const { left, top, width } = canvas.getBoundingClientRect();
  const at = { clientX: left + width / 2, clientY: top + 80 };
  canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: -240, ...at, bubbles: true, cancelable: true }));
  return new Promise((done) => { setTimeout(() => done(canvas.toDataURL() !== picture), 500); });
}"""


@dataclass
class Window:
    """One tab of a Firefox, and what its console said."""

    socket: aiohttp.ClientWebSocketResponse
    context: str = ""
    said: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a command; complaints that come before it are kept."""
        number = next(self.numbers)
        await self.socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(LIMIT_S):
            while True:
                message = json.loads((await self.socket.receive()).data)
                if message.get("method") == "log.entryAdded" and message["params"]["level"] in {"error", "warn"}:
                    self.said.append(str(message["params"]["text"]))
                if message.get("id") == number:
                    if message["type"] == "error":
                        raise RuntimeError(f"{method}: {message['message']}")
                    return dict(message["result"])

    async def run(self, function: str) -> Any:  # noqa: ANN401 - whatever the script returns
        """What a script returns, with its promise kept."""
        target = {"context": self.context}
        answer = await self.ask("script.callFunction", functionDeclaration=function, target=target, awaitPromise=True)
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return answer["result"].get("value")

    async def open(self, address: str) -> None:
        """Goes to an address that differs in more than what stands after its `#`."""
        await self.ask("browsingContext.navigate", context=self.context, url="about:blank", wait="complete")
        await self.ask("browsingContext.navigate", context=self.context, url=address, wait="complete")

    async def resize(self, width: int, height: int) -> None:
        """Gives the page this many CSS pixels."""
        await self.ask("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height})

    async def until_shown(self, text: str) -> bool:
        """Whether a text appears."""
        shown = f"() => document.body.innerText.includes({json.dumps(text)})"
        for _ in range(LIMIT_S * 5):
            if await self.run(shown):
                return True
            await asyncio.sleep(0.2)
        return False

    async def picture(self, path: Path) -> None:
        """Saves what is in sight."""
        answer = await self.ask("browsingContext.captureScreenshot", context=self.context)
        path.write_bytes(base64.b64decode(answer["data"]))


def main(names: Sequence[str]) -> None:
    """Goes through the views; exits with 1 where one is not as it should be."""
    if not FIREFOX:
        raise SystemExit("Firefox is missing: `apt-get install firefox-esr`, or set FIREFOX to its path")
    folder = Path(names[0]) if names else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, served(logdir(Path(place))) as address:
        faults = asyncio.run(looked_at(address, folder))
    sys.stdout.write("".join(f"{fault}\n" for fault in faults) or f"{len(VIEWS)} views are well in Firefox.\n")
    sys.exit(bool(faults))


def logdir(place: Path) -> Path:
    """The runs that the accessibility tests have."""
    runs = place / "runs"
    for sample in (UNTIDY, TIDY, "text_generation_eval"):
        shutil.copytree(ROOT / "sample_runs" / sample, runs / sample)
    for rank, comes_us in enumerate((1000, 8000)):
        record(runs / "two_ranks", rank, comes_us)
    (runs / "broken").mkdir()
    (runs / "broken" / "worker.1.pt.trace.json").write_bytes(b"not a trace")
    return runs


@contextmanager
def served(runs: Path) -> Iterator[str]:
    """The address of the page, with its token."""
    token = Token()
    with (
        listening(HOME, 0) as listener,
        server_of(ServerOptions(Logdir(str(runs)), cache="off"), token, listener) as server,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield address_of(listener, HOME, token)
        server.shutdown()


async def looked_at(address: str, folder: Path) -> list[str]:
    """What is wrong in any view."""
    faults: list[str] = []
    async with firefox() as window:
        await window.open(address)  # its token becomes a cookie
        home = address.partition("?")[0]
        for name, (link, text) in VIEWS.items():
            keys = "".join(f"&p.torchtidy.{key}={value}" for key, value in link.items())
            for width, height in SIZES:
                await window.resize(width, height)
                await window.open(f"{home}#torchtidy{keys}")
                shown = IN_A_LIST.get(name, text) if width < SIZES[0][0] else text
                if not await window.until_shown(shown):
                    faults.append(f"{name}, {width} px: “{shown}” does not appear")
                await asyncio.sleep(SETTLED_S)
                if await window.run("() => document.documentElement.scrollWidth > innerWidth"):
                    faults.append(f"{name}, {width} px: wider than its window")
                await window.picture(folder / f"{name.replace(' ', '-')}-{width}.png")
            if name == "timeline" and not await window.run(WHEEL):
                faults.append("timeline: does not move under the wheel")
            faults += [f"{name}: {said}" for said in window.said]
            window.said.clear()
    return faults


@asynccontextmanager
async def firefox() -> AsyncIterator[Window]:
    """A Firefox without a window, with a profile of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ("--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank")
        process = await asyncio.create_subprocess_exec(FIREFOX, *options, stdout=-3, stderr=asyncio.subprocess.PIPE)
        try:
            async with asyncio.timeout(START_S):
                address = await _listening(process)
            async with (
                aiohttp.ClientSession() as client,
                client.ws_connect(f"{address}/session", max_msg_size=0) as socket,
            ):
                window = Window(socket)
                await window.ask("session.new", capabilities={})
                await window.ask("session.subscribe", events=["log.entryAdded"])
                window.context = (await window.ask("browsingContext.getTree"))["contexts"][0]["context"]
                yield window
        finally:
            process.terminate()
            await process.wait()


async def _listening(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async for line in process.stderr:
        if found := LISTENING.search(line.decode(errors="replace")):
            return found[1]
    raise SystemExit(f"{FIREFOX} ended before it listened")


if __name__ == "__main__":
    main(sys.argv[1:])
