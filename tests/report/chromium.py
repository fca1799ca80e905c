"""Headless Chromium, driven over a pipe by its DevTools protocol: nothing but the standard library."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import pytest

SECONDS = 60.0


def executable() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


needs_chromium = pytest.mark.skipif(executable() is None, reason="no Chromium here: apt-get install chromium")


class Chromium:
    """One browser; ``page`` opens tabs in it."""

    def __init__(self) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read_here, write_there = os.pipe()
        read_there, self._write = os.pipe()
        self._read, self._buffer, self._number = read_here, b"", 0
        self.events: list[dict[str, Any]] = []
        program = executable()
        assert program is not None
        options = (
            "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-extensions "
            "--disable-background-networking --disable-component-update --hide-scrollbars --remote-debugging-pipe"
        )
        # The browser reads commands from descriptor 3 and writes answers to descriptor 4.
        shell = f'exec "$0" {options} --user-data-dir="$1" about:blank 3<&{read_there} 4>&{write_there}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, program, self._profile.name],
            pass_fds=(read_there, write_there),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_there)
        os.close(write_there)

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """One command and its answer; events that come in between are kept."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            received = self.receive(SECONDS)
            assert received is not None, f"no answer to {method} within {SECONDS:.0f} s"
            if received.get("id") == number:
                assert "error" not in received, received["error"]
                return received["result"]
            self.events.append(received)

    def receive(self, seconds: float) -> dict[str, Any] | None:
        deadline = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                return None
            part = os.read(self._read, 2**20)
            assert part, "Chromium has ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def page(self, url: str, width: int = 1100, height: int = 900, dark: bool = False) -> "Page":
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session, url, width, height, dark)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)
        self._profile.cleanup()


class Page:
    """A tab, loaded and drawn."""

    def __init__(self, browser: Chromium, session: str, url: str, width: int, height: int, dark: bool) -> None:
        self.browser, self.session, self.url = browser, session, url
        for room in ("Page", "Runtime", "Log", "Network"):
            self._send(f"{room}.enable")
        self._size(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", features=[scheme])
        # Some errors, of a ResizeObserver for one, reach nobody but the window's own listeners.
        listener = "addEventListener('error', event => console.error(`window: ${event.message}`))"
        self._send("Page.addScriptToEvaluateOnNewDocument", source=listener)
        self._send("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete'")
        # Sizes are observed in the first frame, charts are drawn in the second, their own sizes observed after it.
        self.wait_for_frames(3)

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.send(method, self.session, **parameters)

    def evaluate(self, expression: str) -> Any:
        answer = self._send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression: str, seconds: float = SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {expression}"
            time.sleep(0.05)

    def resize(self, width: int, height: int = 900) -> None:
        self._size(width, height)
        self.wait_for_frames(3)

    def _size(self, width: int, height: int) -> None:
        self._send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def wait_for_frames(self, count: int) -> None:
        for _ in range(count):
            # A browser that is busy or thinks itself hidden draws no frame: then a second has to do.
            self.evaluate("new Promise(done => { requestAnimationFrame(done); setTimeout(done, 1000) })")

    def errors(self) -> list[str]:
        """What the console and the window complained of."""
        self.evaluate("0")  # what was said before its answer has arrived with it
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded")
        found = [event["params"] for event in self._events() if event["method"] in kinds]
        said = [event["params"] for event in self._events() if event["method"] == "Runtime.consoleAPICalled"]
        return [json.dumps(one) for one in [*found, *(one for one in said if one["type"] in ("error", "warning"))]]

    def requests(self) -> list[str]:
        """Every address that was asked for, but for what the page holds itself."""
        asked = [event["params"]["request"]["url"] for event in self._events("Network.requestWillBeSent")]
        return [url for url in asked if not url.startswith("data:")]

    def _events(self, method: str | None = None) -> list[dict[str, Any]]:
        own = [event for event in self.browser.events if event.get("sessionId") == self.session]
        return own if method is None else [event for event in own if event["method"] == method]

    def screenshot(self, path: Path, whole: bool = True) -> None:
        answer = self._send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def print(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._send("Page.printToPDF")["data"]))

    def close(self) -> None:
        self._send("Page.close")
