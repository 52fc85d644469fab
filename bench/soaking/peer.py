"""One connection of the soak: requests out, answers and notifications in, all of them looked at.

Frames are made and taken apart by the ``websockets`` library, which shares no code with the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect, unix_connect
from websockets.exceptions import ConnectionClosed

from bench.soaking.tale import Tale

Message = dict[str, Any]

PATIENCE = 90.0
"""Seconds after which something that was to come is missing.  A guard, on a machine with other work too."""

_LARGEST = 64 << 20
_STARTS = ("process/start", "process/spawn", "command/exec")
_NOBODY = Tale("")


def _name(params: Message) -> str:
    name: str = params.get("processId") or params.get("processHandle") or ""
    return name


class Wrong(Exception):
    """The server did something that it must not do."""


class Refusal(Exception):
    """The answer is an error."""

    def __init__(self, error: Message) -> None:
        super().__init__(f"{error['code']} {error['message']} {error.get('data') or ''}")
        self.code: int = error["code"]
        self.text: str = error["message"]
        self.data: Any = error.get("data")


class Gone(Exception):
    """The connection has ended."""


def check(truth: object, what: str) -> None:
    """Say what is wrong unless it is so."""
    if not truth:
        raise Wrong(what)


class Peer:
    """Speaks either dialect; keeps a tale of each process that it was told of."""

    def __init__(self, link: ClientConnection) -> None:
        self._link = link
        self._next = 0
        self._answers: dict[int, asyncio.Future[Message]] = {}
        self._starts: dict[int, tuple[str, Tale, bool]] = {}
        """By request: the method, the tale, and whether it begins here."""
        self._news: set[asyncio.Future[None]] = set()
        self.tales: dict[str, Tale] = {}
        self.told: list[Message] = []
        """Notifications that are about no process, and errors that answer no request."""
        self.requests = 0
        self.bytes = 0
        self.session = ""
        self.is_over = False
        self.listening = asyncio.Event()
        """While it is not set, nothing is taken from the wire."""
        self.listening.set()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, url: str) -> Peer:
        """Connected, no word said."""
        options: dict[str, Any] = {
            "compression": None,
            "max_size": _LARGEST,
            "ping_interval": None,
            "open_timeout": PATIENCE,
            "close_timeout": PATIENCE,
            "user_agent_header": None,
        }
        if url.startswith("unix://"):
            return cls(await unix_connect(url.removeprefix("unix://"), "ws://localhost/", **options))
        return cls(await connect(url, proxy=None, **options))

    # Out.

    async def post(self, method: str, params: Any = None) -> asyncio.Future[Message]:
        """Send a request; the future has the whole answer."""
        self._next += 1
        self.requests += 1
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._answers[self._next] = answer
        message = {"id": self._next, "method": method}
        if params is not None:
            message["params"] = params
        if method in _STARTS and (name := _name(params)):
            is_new = name not in self.tales
            tale = self.tale(name)
            # A command is answered at its end, the others before they say anything.
            tale.answered |= method == "command/exec"
            self._starts[self._next] = (method, tale, is_new)
        await self.send(json.dumps(message))
        return answer

    async def call(self, method: str, params: Any = None) -> Any:
        """Send a request and wait for its result.

        Raises:
            Refusal: The answer is an error.
            Gone: There is none.
        """
        return await self.result(await self.post(method, params))

    async def result(self, answer: asyncio.Future[Message]) -> Any:
        """The result in an answer."""
        async with asyncio.timeout(PATIENCE):
            message = await answer
        if "error" in message:
            raise Refusal(message["error"])
        return message["result"]

    async def refused(self, code: int, words: str, method: str, params: Any = None) -> Refusal:
        """Send a request that must be answered with this error."""
        try:
            result = await self.call(method, params)
        except Refusal as refusal:
            if refusal.code != code or words not in refusal.text:
                raise Wrong(f"{method}: not {code} {words!r} but {refusal}") from refusal
            return refusal
        raise Wrong(f"{method} was to be refused with {code} {words!r}, and answered {result}")

    async def notify(self, method: str) -> None:
        await self.send(json.dumps({"method": method}))

    async def send(self, text: str | bytes) -> None:
        """Send whatever it is as one message."""
        try:
            await self._link.send(text)
        except (ConnectionClosed, OSError) as error:
            raise Gone(str(error)) from error

    def send_bytes(self, data: bytes) -> None:
        """Put bytes on the wire, without a frame around them."""
        self._link.transport.write(data)

    # In.

    def tale(self, name: str) -> Tale:
        return self.tales.setdefault(name, Tale(name))

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until what was heard makes the condition true."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():
                    if self.is_over:
                        raise Gone(f"the connection ended before {what}")
                    news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._news.add(news)
                    await news
        except TimeoutError:
            raise Wrong(f"{what}: nothing of it within {PATIENCE:g} s") from None

    async def closed(self, name: str) -> Tale:
        """Wait for the end of a process; give its tale, which is then forgotten here."""
        tale = self.tale(name)
        await self.until(lambda: tale.is_closed, f"{name} was closed")
        return self.tales.pop(name)

    async def over(self) -> str:
        """Wait until the server has ended the connection; give the code and the reason it told."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait([self._reading])
        return f"{self._link.close_code} {self._link.close_reason}"

    async def _read(self) -> None:
        try:
            async for text in self._link:
                await self.listening.wait()
                self.bytes += len(text)
                self._heard(json.loads(text))
                self._wake()
        except (ConnectionClosed, OSError):
            pass
        finally:
            self.is_over = True
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(Gone("the connection ended before the answer"))
                    answer.exception()
            self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, set()
        for each in news:
            if not each.done():
                each.set_result(None)

    def _heard(self, message: Message) -> None:
        if "method" not in message:
            self._answered(message)
            return
        name = _name(message["params"])
        if name:
            self.tale(name).hear(message["method"], message["params"])
        else:
            self.told.append(message)

    def _answered(self, message: Message) -> None:
        answer = self._answers.pop(message["id"], None)
        method, tale, is_new = self._starts.pop(message["id"], ("", _NOBODY, False))
        tale.answered = True
        tale.is_closed |= method == "command/exec"
        if "error" in message and is_new and not tale.after and not tale.data:
            self.tales.pop(tale.name, None)
        if answer is None:
            self.told.append(message)
        elif not answer.done():
            answer.set_result(message)

    # The end.

    async def close(self) -> None:
        """Say goodbye."""
        with contextlib.suppress(ConnectionClosed, OSError):
            await self._link.close()
        await self._ended()

    async def drop(self) -> None:
        """Vanish."""
        self._link.transport.abort()
        await self._ended()

    async def _ended(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait([self._reading])
