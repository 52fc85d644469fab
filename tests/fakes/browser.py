"""A real browser without a window, if there is one: pages are opened, and asked in JavaScript."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

BROWSER = os.environ.get("HOLDFAST_BROWSER", "")
"""The path of Chromium, or of what is made of it."""

MISSING = not BROWSER
WHY = "needs in HOLDFAST_BROWSER the path of a Chromium"

PATIENCE = 60.0
"""Seconds for one answer, on a host that has much else to do."""


class Tab:
    """A tab of the browser."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.call("Page.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the browser for something, and return its answer."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._connection.send(json.dumps(message))
        answer = self._awaited(lambda found: found.get("id") == number)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def show_as(self, *, width: int, scheme: str) -> None:
        """Take the width of a screen, and a mode: ``light`` or ``dark``."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, url: str) -> None:
        """Open a page; return when it is loaded."""
        self.call("Page.navigate", url=url)
        self._awaited(lambda found: found.get("method") == "Page.loadEventFired")

    def ask(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page; what it promises is waited for."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def _awaited(self, wanted: Any) -> dict[str, Any]:
        while True:
            found: dict[str, Any] = json.loads(self._connection.recv(timeout=PATIENCE))
            if wanted(found):
                return found


@contextmanager
def tab(folder: Path) -> Iterator[Tab]:
    """Open a browser that keeps its files in a folder."""
    command = [
        *(BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as browser:
        try:
            assert browser.stderr is not None
            lines = (line.decode(errors="replace") for line in browser.stderr)
            url = next(found[0] for line in lines if (found := re.search(r"ws://\S+", line)))
            with connect(url, max_size=None) as connection:
                yield Tab(connection)
        finally:
            browser.kill()
