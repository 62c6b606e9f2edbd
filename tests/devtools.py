"""A tab of a browser that is driven over the Chrome DevTools Protocol: for pages with workers, whose time is real."""

import asyncio
import functools
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import aiohttp

__all__ = ["Tab", "opened_tab", "served"]

_TIMEOUT: Final = 120.0
"""Seconds until a command counts as failed: many times of what one takes on a busy machine."""
_OPTIONS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--remote-debugging-port=0",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_NO_SESSION: Final = -32001
_ADDRESS: Final = re.compile(rb"DevTools listening on (ws://\S+)")


class ClosedError(RuntimeError):
    """The session of a command has ended."""


class Tab:
    """A tab.

    Attributes:
        complaints: What the page wrote to the console, and errors that it did not catch.
        requests: The addresses that it and its workers requested.
    """

    def __init__(self, socket: "aiohttp.ClientWebSocketResponse") -> None:
        self._socket = socket
        self._number = 0
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._session: str | None = None
        self._loaded: asyncio.Future[None] | None = None
        self._background: set[asyncio.Future[Any]] = set()

    async def start(self) -> None:
        """Attach to a new tab."""
        created = await self.send("Target.createTarget", url="about:blank")
        attached = await self.send("Target.attachToTarget", targetId=created["targetId"], flatten=True)
        self._session = attached["sessionId"]
        await self._watch(attached["sessionId"])

    async def _watch(self, session: str) -> None:
        for domain in ("Runtime", "Log", "Network"):
            await self.send(f"{domain}.enable", session=session)
        attach = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
        await self.send("Target.setAutoAttach", session=session, **attach)

    async def read(self) -> None:
        """Take the messages of the browser until it is closed."""
        async for message in self._socket:
            self._take(json.loads(message.data))

    def _take(self, message: Any) -> None:
        if "id" in message:
            answer = self._answers.pop(message["id"])
            if not answer.done():
                answer.set_result(message)
            return
        method, parameters = message["method"], message["params"]
        if method == "Runtime.consoleAPICalled":
            self.complaints.append(" ".join(str(each.get("value", each)) for each in parameters["args"]))
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.complaints.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Page.loadEventFired" and self._loaded is not None:
            self._loaded.set_result(None)
        elif method == "Target.attachedToTarget" and parameters["waitingForDebugger"]:
            self._later(self._start_worker(parameters["sessionId"]))

    async def _start_worker(self, session: str) -> None:
        # A worker that starts while the page is left has ended before it is attached to.
        with suppress(ClosedError):
            await self._watch(session)
            await self.send("Runtime.runIfWaitingForDebugger", session=session)

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def send(self, method: str, *, session: str | None = None, **parameters: Any) -> Any:
        """Send a command.

        Args:
            method: Its name.
            session: The session of a worker; None for the tab.
            **parameters: Its parameters.

        Returns:
            The result.

        Raises:
            ClosedError: If the session has ended.
            RuntimeError: If the browser refuses it for another reason.
        """
        self._number += 1
        number = self._number
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        command = {"id": number, "method": method, "params": parameters}
        used = session or self._session
        await self._socket.send_json({**command, "sessionId": used} if used else command)
        found = await asyncio.wait_for(answer, _TIMEOUT)
        if found.get("error", {}).get("code") == _NO_SESSION:
            raise ClosedError(method)
        if "error" in found:
            raise RuntimeError(f"{method}: {found['error']}")
        return found["result"]

    async def open(self, address: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Open a page in a size and a scheme of colours, and wait until it is loaded."""
        await self.resize(width, height, dark=dark)
        await self.send("Page.enable")
        await self.go(address)

    async def go(self, address: str) -> None:
        """Open a page in the present size and scheme, once a page was opened, and wait until it is loaded."""
        self._loaded = asyncio.get_running_loop().create_future()
        await self.send("Page.navigate", url=address)
        await asyncio.wait_for(self._loaded, _TIMEOUT)
        self._loaded = None

    async def resize(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Change the size of the page in pixels, and its scheme of colours."""
        metrics: dict[str, Any] = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.send("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.send("Emulation.setEmulatedMedia", features=scheme)

    async def evaluate(self, script: str) -> Any:
        """Return the value of an expression in JavaScript, which may be a promise."""
        found = await self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"]))
        return found["result"].get("value")

    async def drag(self, *points: tuple[float, float]) -> None:
        """Press the mouse at the first point, move it over the others, and release it."""
        pressed: dict[str, Any] = {"button": "left", "clickCount": 1}
        for kind, (x, y) in (("mousePressed", points[0]), *(("mouseMoved", each) for each in points[1:])):
            await self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, buttons=1, **pressed)
        x, y = points[-1]
        await self.send("Input.dispatchMouseEvent", type="mouseReleased", x=x, y=y, **pressed)

    async def press(self, key: str) -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            await self.send("Input.dispatchKeyEvent", type=kind, key=key)


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name of the base)
        """Write nothing about requests."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the files of a folder; yield the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@asynccontextmanager
async def opened_tab(chromium: str, folder: Path) -> AsyncIterator[Tab]:
    """Start a browser with a profile of its own, and close it at the end.

    Args:
        chromium: The program.
        folder: Folder of the profile.
    """
    options = (*_OPTIONS, f"--user-data-dir={folder / 'profile'}")
    program = await asyncio.create_subprocess_exec(
        chromium, *options, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert program.stderr is not None
        found = None
        while found is None:
            line = await asyncio.wait_for(program.stderr.readline(), _TIMEOUT)
            assert line, "the browser ended"
            found = _ADDRESS.search(line)
        rest = asyncio.ensure_future(program.stderr.read())
        async with (
            aiohttp.ClientSession() as client,
            client.ws_connect(found[1].decode(), max_msg_size=0) as socket,
        ):
            tab = Tab(socket)
            reading = asyncio.ensure_future(tab.read())
            try:
                await tab.start()
                yield tab
                await tab.send("Browser.close")
            finally:
                reading.cancel()
                rest.cancel()
    finally:
        if program.returncode is None:
            program.kill()
        await program.wait()
