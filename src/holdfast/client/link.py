"""A connection to a server that reconnects and resumes; the owner of all tasks of a client.

What must hold:

1. A call is answered once, or fails once; a connection that breaks in between is not its failure.
2. What was sent and not answered is sent again if doing it twice is the same as doing it
   once; if not, its caller is told that nobody knows.
3. Calls go out in the order in which they were made, also after a break.
4. Whoever follows processes is told of every new connection before anything is sent on it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, Protocol, TypeVar, overload

import msgspec

from holdfast.errors import (
    BadRequest,
    HoldfastError,
    LimitReached,
    LinkLost,
    OutcomeUnknown,
    SessionBusy,
)
from holdfast.protocol.session import CLOSE_SESSION, EnvironmentInfo
from holdfast.protocol.shapes import Signature, reader
from holdfast.wire.jsonrpc import Incoming

from .address import Address, Program
from .calls import Answer, Answered, PendingCalls, Within, put_into
from .channel import NoConnection, ServerChannel
from .connecting import INITIALIZED, Attempts, Greeting, Heartbeat, connect, look, loss, shake_hands

_MOST_CALLS = 4096
"""Calls that wait for their answer: what a server takes of one connection."""

_GOODBYE_SECONDS = 5.0
"""How long the end of a session may take, and all that is in it, before we leave anyway."""

_decode = reader(Incoming)

T = TypeVar("T")
P = TypeVar("P")
R = TypeVar("R")


class Follower(Protocol):
    """The owner of the processes on a server, as the link to it sees it."""

    def broke(self, reason: str) -> None:
        """Take note that the connection is gone, with everything that was bound to it."""

    def resumed(self) -> None:
        """Take note of a new connection to the same session; notifications in between were missed."""

    def forgotten(self, reason: str) -> None:
        """There is a new connection, but the session is a new one as well."""

    def over(self, error: LinkLost) -> None:
        """There will be no more connections."""

    def output(self, message: bytes | memoryview) -> bool:
        """Take a message if it is output; say whether it was."""

    def notified(self, method: str, params: msgspec.Raw) -> None:
        """Take any other notification."""


class LinkState(Enum):
    """Whether there is a connection to the server."""

    NEW = 1
    DOWN = 2
    """There is no connection; one is being made."""
    UP = 3
    OVER = 4
    """There will be no more."""


class Link:
    """A client's connection to a server, whichever one it is at the moment.

    Implements ``channel.MessageListener``.
    """

    def __init__(
        self,
        address: Address,
        follower: Follower,
        *,
        token: str | None,
        client_name: str,
        heartbeat: float,
        reconnect_timeout: float,
    ) -> None:
        """``heartbeat`` and ``reconnect_timeout`` are seconds, as in ``RemoteBackend``."""
        self.address = address
        self._follower = follower
        self._token = token
        self._client_name = client_name
        self._silence = heartbeat
        self._reconnect_timeout = reconnect_timeout
        self._state = LinkState.NEW
        self._leaving = asyncio.Event()
        self._error: LinkLost | None = None
        self._channel: ServerChannel | None = None
        self._calls = PendingCalls()
        self._session: str | None = None
        self._broken: asyncio.Future[str] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._keeper: asyncio.Task[None] | None = None
        self._heartbeat: Heartbeat | None = None
        self.features: frozenset[str] = frozenset()
        """What the server can do beyond the protocol."""
        self.info: EnvironmentInfo | None = None
        self.connections = 0
        """How many there have been."""

    # The beginning.

    async def open(self) -> None:
        """Make the first connection.

        Raises:
            LinkLost: There is no server.
        """
        assert self._state is LinkState.NEW
        self._loop = asyncio.get_running_loop()
        self._state = LinkState.DOWN
        try:
            try:
                await self._connect()
            except NoConnection as error:
                if error.final or not error.reached or isinstance(self.address, Program):
                    raise loss(self.address, error) from None
                await self._reconnect()
        except LinkLost as error:
            self._end(error)
            raise self._lost from None
        except HoldfastError as error:
            self._end(loss(self.address, error))
            raise self._lost from error
        except BaseException:
            self._end(LinkLost("closed"))
            raise
        self._keeper = self.own(self._keep())

    def own(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Have something done that ends with this link at the latest."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _keep(self) -> None:
        """Make a connection whenever there is none."""
        while self._state is not LinkState.OVER:
            assert self._broken is not None
            reason = await self._broken
            if self._leaving.is_set():
                return
            if isinstance(self.address, Program):
                # Another program would be another server.
                self._end(LinkLost(reason))
                return
            try:
                await self._reconnect()
            except LinkLost as error:
                self._end(error)

    async def _reconnect(self) -> None:
        """Connect again, with pauses, as long as there is hope."""
        attempts = Attempts(self._loop.time() + self._reconnect_timeout)
        while True:
            try:
                async with asyncio.timeout_at(attempts.deadline):
                    await self._connect()
                return
            except TimeoutError:
                raise loss(self.address, NoConnection("it does not answer")) from None
            except NoConnection as error:
                cause = error if self.connections else await look(self.address, error)
                if cause.final or attempts.are_over(self._loop.time()):
                    raise loss(self.address, cause) from None
            except SessionBusy as error:
                # The server has not noticed yet that we are gone.
                if attempts.are_over(self._loop.time()):
                    raise LinkLost(str(error)) from None
            except HoldfastError as error:
                raise loss(self.address, error) from error
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(attempts.pause()):
                    await self._leaving.wait()

    async def _connect(self) -> None:
        """One attempt: connection, handshake, and everything that was waiting for them."""
        # What is asked for a sign of life is cut off after as long.
        patience = 2 * self._silence
        self._check_stay()
        channel = await connect(self.address, token=self._token, patience=patience)
        self._channel = channel
        self._broken = self._loop.create_future()
        channel.listen(self)
        greeting: Greeting | None = None
        try:
            self._check_stay()
            async with asyncio.timeout(patience):
                greeting = await shake_hands(self._ask, self._client_name, self._session, self.features)
        except (OutcomeUnknown, TimeoutError):
            channel.cut("no answer in time")
            raise NoConnection(self._broken.result(), reached=True) from None
        except msgspec.DecodeError as error:
            raise NoConnection(f"its answer makes no sense: {error}", reached=True) from None
        finally:
            if greeting is None:
                channel.cut("given up")
                await channel.aclose()
        if self._broken.done():
            raise NoConnection(self._broken.result(), reached=True)
        channel.send(INITIALIZED)
        self.info, self.features = greeting.info, greeting.features
        again = self._keeper is not None
        self._state = LinkState.UP
        self.connections += 1
        if not isinstance(self.address, Program):  # A pipe whose other end is gone says so.
            self._heartbeat = Heartbeat(channel, self._silence, self._loop)
        if greeting.forgotten:
            self._follower.forgotten(f"{self.address} no longer knows the session")
            self._calls.forgotten(self._session or "")
        elif again:
            self._follower.resumed()
        self._session = greeting.session
        for text in self._calls.unsent():
            channel.send(text)

    # Calls.

    @overload
    async def call(
        self, signature: Signature[P, R], params: P, *, repeat: bool = True, within: Within = Within.ANY
    ) -> R: ...

    @overload
    async def call(
        self,
        signature: Signature[P, R],
        params: P,
        into: Callable[[R], T],
        *,
        repeat: bool = True,
        within: Within = Within.ANY,
    ) -> T: ...

    async def call(
        self,
        signature: Signature[P, R],
        params: P,
        into: Callable[[R], Any] = lambda result: result,
        *,
        repeat: bool = True,
        within: Within = Within.ANY,
    ) -> Any:
        """Ask the server; return its answer, whatever becomes of connections in between.

        Cancelling forgets about the answer; the server may have done it.

        Args:
            into: Makes of the answer what is returned; raises ``ValueError`` or ``BadRequest`` for one
                that makes no sense.
            repeat: Whether doing it twice is the same as doing it once.
            within: In which session.

        Raises:
            HoldfastError: What the server says.
            OutcomeUnknown: It was sent, the connection broke, and it must not be repeated.
            SessionUnknown: It was about a session that the server no longer knows.
            LinkLost: There is no connection any more.
        """
        await self.room()
        future: asyncio.Future[msgspec.Raw] = self._loop.create_future()
        number = self.ask(signature, params, put_into(future), repeat=repeat, within=within)
        answer = await self._answer(number, future)
        try:
            return into(signature.read(answer))
        except (msgspec.DecodeError, ValueError, OverflowError, BadRequest) as error:
            raise LinkLost(f"the server's answer to {signature.name} makes no sense: {error}") from error

    async def room(self) -> None:
        """Wait while so much is unsent that more should not be added.

        Raises:
            LimitReached: Too many calls wait for their answers.
        """
        self._check()
        if self._channel is not None:
            await self._channel.room()
            self._check()
        if len(self._calls) >= _MOST_CALLS:
            raise LimitReached("requests waiting for an answer", _MOST_CALLS)

    def ask(
        self,
        signature: Signature[P, R],
        params: P,
        answered: Answered,
        *,
        repeat: bool = True,
        within: Within = Within.ANY,
    ) -> int:
        """``call`` for those who do not wait; return its number, for ``forget`` and ``stop_repeating``."""
        if self._error is not None:
            self._loop.call_soon(answered, self._lost)
            return 0
        number = self._calls.enter(signature.name, params, answered, repeat=repeat, within=within)
        if self._state is LinkState.UP:
            self._send(number)
        return number

    def post(self, signature: Signature[P, R], params: P, *, within: Within = Within.ANY) -> None:
        """Ask for something that may be repeated; nobody waits for the answer."""
        self.ask(signature, params, _ignored, within=within)

    def forget(self, number: int) -> None:
        """The answer to a call is no longer wanted."""
        self._calls.forget(number)

    def stop_repeating(self, number: int) -> bool:
        """Never send a call again, but take its answer: see ``PendingCalls.stop_repeating``."""
        return self._calls.stop_repeating(number)

    @property
    def next_connection(self) -> int:
        """Which connection, counted from 1, a call that is made now is sent on first."""
        return self.connections + (self._state is not LinkState.UP)

    async def _answer(self, number: int, future: asyncio.Future[msgspec.Raw]) -> msgspec.Raw:
        try:
            return await future
        finally:
            self._calls.forget(number)

    def _send(self, number: int) -> None:
        text = self._calls.send(number)
        if self._channel is not None:
            self._channel.send(text)

    async def _ask(self, signature: Signature[P, R], params: P) -> R:
        """Make a call of the handshake: sent at once, and not repeated."""
        future: asyncio.Future[msgspec.Raw] = self._loop.create_future()
        number = self._calls.enter(signature.name, params, put_into(future), repeat=False)
        self._send(number)
        return signature.read(await self._answer(number, future))

    def _check_stay(self) -> None:
        """Raise if ``aclose`` was called while another task still connects."""
        if self._leaving.is_set():
            raise NoConnection("closed by this program", final=True)

    def _check(self) -> None:
        if self._error is not None:
            raise self._lost

    @property
    def _lost(self) -> LinkLost:
        assert self._error is not None
        return self._error.copy()

    # Implements ``channel.MessageListener``.

    def received(self, message: bytes | memoryview) -> None:
        if self._follower.output(message):
            return
        try:
            envelope = _decode(bytes(message))
        except msgspec.DecodeError:
            self._cut("the server sent something that is no message")
            return
        if envelope.method is not None:
            if envelope.id is None:
                try:
                    self._follower.notified(envelope.method, envelope.params)
                except msgspec.DecodeError:
                    self._cut(f"the server sent a {envelope.method} that is none")
            return
        if envelope.error is not None and envelope.id == -1:
            # Something of ours did not arrive as it was sent; nobody knows what.
            self._cut(f"the server could not read a message: {envelope.error.message}")
            return
        self._calls.answer(envelope)

    def broke(self, reason: str) -> None:
        if self._state is LinkState.UP:
            self._state = LinkState.DOWN
        self._channel = None
        if self._heartbeat is not None:
            self._heartbeat.stop()
        self._calls.broke()
        self._follower.broke(reason)
        if self._broken is not None and not self._broken.done():
            self._broken.set_result(reason)

    def _cut(self, reason: str) -> None:
        if self._channel is not None:
            self._channel.cut(reason)

    # The end.

    def _end(self, error: LinkLost) -> None:
        if self._state is LinkState.OVER:
            return
        self._state, self._error = LinkState.OVER, error
        self._calls.end(lambda: self._lost)
        if self._channel is not None:
            self._channel.cut(error.reason)
        self._follower.over(error)

    async def aclose(self) -> None:
        """End the session, with all in it that is not kept, and the connection.  May be called twice."""
        self._leaving.set()
        try:
            if self._state is LinkState.UP and "sessionClose" in self.features:
                with contextlib.suppress(HoldfastError, TimeoutError):
                    async with asyncio.timeout(_GOODBYE_SECONDS):
                        await self.call(CLOSE_SESSION, None, repeat=False)
            if self._channel is not None:
                await self._channel.aclose()
        finally:
            self._end(LinkLost("closed by this program"))
            tasks = [task for task in self._tasks if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)


def _ignored(answer: Answer) -> None:
    """Drop an answer, or its error, that no caller waits for."""
