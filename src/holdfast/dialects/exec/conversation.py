"""The exec endpoint, and the conversation with each of its clients from the handshake on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from holdfast.backend import HostedBackend
from holdfast.config import FileLimits, HttpLimits, SandboxLimits, SessionLimits
from holdfast.dialects.dialect import Breach, Client, Method, WireError
from holdfast.errors import (
    BadRequest,
    FileRefused,
    HandleTaken,
    HoldfastError,
    LimitReached,
    OutOfTurn,
    UnknownHandle,
)
from holdfast.files import FileWatch, OpenFile
from holdfast.protocol.errors import MALFORMED
from holdfast.wire import jsonrpc
from holdfast.wire.jsonrpc import Notification, Response

from .explain import INVALID_REQUEST, explain
from .path_locks import PathLocks
from .places import CodexPlaces
from .scopes import Session, Tenant
from .state import ExecState

if TYPE_CHECKING:
    from .notifying import WebhookSender


class Subscription(Protocol):
    """What tells a client of events, as its conversation sees it."""

    def drained(self) -> None:
        """The client has caught up."""

    def end(self) -> None:
        """Tell the client nothing more."""


class Handles:
    """The names that a client gave to its open files."""

    __slots__ = ("_files", "_limits")

    def __init__(self, limits: FileLimits) -> None:
        self._limits = limits
        # None while it is being opened.
        self._files: dict[str, OpenFile | None] = {}

    def __len__(self) -> int:
        return len(self._files)

    def check(self, name: str) -> None:
        """Raise if nobody can have such a name."""
        if len(name.encode()) > self._limits.handle_bytes:
            words = f"file handle ID must not exceed {self._limits.handle_bytes} bytes"
            raise FileRefused(words, bound="file.handle_bytes")

    def reserve(self, name: str) -> None:
        """Take a name for a file that is about to be opened."""
        if name in self._files:
            raise HandleTaken(name)
        if len(self._files) >= self._limits.handles:
            raise LimitReached("file handles of one connection", self._limits.handles, name="file.handles")
        self._files[name] = None

    def put(self, name: str, file: OpenFile) -> None:
        self._files[name] = file

    def get(self, name: str) -> OpenFile:
        file = self._files.get(name)
        if file is None:
            raise UnknownHandle(name)
        return file

    def drop(self, name: str) -> None:
        """Close a file, if there is one, and free its name."""
        file = self._files.pop(name, None)
        if file is not None:
            file.close()

    def close(self) -> None:
        for name in list(self._files):
            self.drop(name)


class MissingWatch:
    """The watch of one connection.  A newer one takes the place of the last."""

    __slots__ = ("_latest", "_watch")

    def __init__(self) -> None:
        self._latest = 0
        self._watch: FileWatch | None = None

    def begin(self, number: int) -> bool:
        """End the last watch for one of this number; False if that is not a newer one."""
        if number <= self._latest:
            return False
        self.stop()
        self._latest = number
        return True

    def is_latest(self, number: int) -> bool:
        return number == self._latest

    def put(self, watch: FileWatch) -> None:
        self._watch = watch

    def stop(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()


class ConnectionFiles:
    """What one connection has to do with files.  Ends with it."""

    __slots__ = ("handles", "locks", "missing")

    def __init__(self, limits: FileLimits) -> None:
        self.locks = PathLocks(limits.connection_calls)
        self.handles = Handles(limits)
        self.missing = MissingWatch()

    def close(self) -> None:
        self.handles.close()
        self.missing.stop()


class Exchanges:
    """What a connection keeps of its HTTP requests."""

    __slots__ = ("_count", "_flowing", "_limits", "_streams")

    def __init__(self, limits: HttpLimits, *, congested: bool) -> None:
        """``congested``: the client does not take what it is sent, at this moment."""
        self._limits = limits
        self._count = 0
        self._streams: set[str] = set()
        self._flowing = asyncio.Event()
        if not congested:
            self._flowing.set()

    def __len__(self) -> int:
        return self._count

    def begin(self, stream: str | None) -> None:
        """One more, streamed under a name or not; to be ended once.

        Raises:
            BadRequest: A stream of that name is not over yet.
            LimitReached: There are too many.
        """
        if stream in self._streams:
            raise BadRequest(
                f"http/request streamResponse requestId `{stream}` is already active", field="requestId"
            )
        if self._count >= self._limits.connection_requests:
            most = self._limits.connection_requests
            raise LimitReached("HTTP requests of a connection", most, name="http.connection_requests")
        self._count += 1
        if stream is not None:
            self._streams.add(stream)

    def end(self, stream: str | None) -> None:
        self._count -= 1
        if stream is not None:
            self._streams.remove(stream)

    # Back-pressure.

    def hold(self) -> None:
        """The client is behind: nothing more is to be received for it."""
        self._flowing.clear()

    def go_on(self) -> None:
        self._flowing.set()

    async def flow(self) -> None:
        """Wait while the client is behind."""
        # Again and again: whoever is woken first may have put the client behind once more.
        while not self._flowing.is_set():
            await self._flowing.wait()


class Handshake(Enum):
    """How far the handshake is."""

    NEW = 1
    INITIALIZED = 2
    """``initialize`` was answered."""
    READY = 3
    """The client has sent ``initialized``."""


_READY: Final = Handshake.READY


class ExecConversation:
    """One client's talk, from the handshake on.  Implements ``dialect.Conversation``."""

    __slots__ = (
        "_discovering",
        "_exchanges",
        "_files",
        "_listing",
        "_session",
        "_tenant",
        "_waiting",
        "backend",
        "client",
        "endpoint",
        "is_congested",
        "stage",
        "subscription",
    )

    binary = True
    envelope = jsonrpc.STRICT

    def __init__(self, endpoint: ExecState, client: Client) -> None:
        self.endpoint = endpoint
        self.client = client
        self.backend = endpoint.backend.on_behalf_of(client.principal, client.peer)
        self.stage = Handshake.NEW
        self._tenant: Tenant | None = None
        self._session: Session | None = None
        self._waiting = 0
        self.is_congested = False
        self._exchanges: Exchanges | None = None
        self._files: ConnectionFiles | None = None
        self._listing: asyncio.Lock | None = None
        self.subscription: Subscription | None = None
        """Tells this client what happens to all processes of its tenant."""
        self._discovering: asyncio.Lock | None = None

    @property
    def session(self) -> Session:
        """The client's session; there is one once it may use methods."""
        assert self._session is not None
        return self._session

    @property
    def exchanges(self) -> Exchanges:
        """The client's HTTP requests; made when first needed."""
        if self._exchanges is None:
            self._exchanges = Exchanges(self.endpoint.http_limits, congested=self.is_congested)
        return self._exchanges

    async def flow(self) -> None:
        """Wait while the client does not take what it is sent."""
        if self.is_congested:
            await self.exchanges.flow()

    @property
    def files(self) -> ConnectionFiles:
        """What the client has to do with files; made when first needed."""
        if self._files is None:
            self._files = ConnectionFiles(self.endpoint.file_limits)
        return self._files

    @property
    def listing(self) -> asyncio.Lock:
        """Whose turn it is among the client's long lists; made when first needed."""
        if self._listing is None:
            self._listing = asyncio.Lock()
        return self._listing

    @property
    def discovering(self) -> asyncio.Lock:
        """Whose turn it is among the client's discoveries, of which each may fill an answer."""
        if self._discovering is None:
            self._discovering = asyncio.Lock()
        return self._discovering

    async def begin(self, resume: str | None, *, extended: bool, by_force: bool = False) -> Session:
        """Open or resume the client's session.

        Args:
            extended: Whether the client knows our extensions.
            by_force: Whether a client that has the session loses it.
        """
        if self.stage is not Handshake.NEW:
            raise OutOfTurn("initialize may only be sent once per connection")
        # Taken back on failure: the client may try again.
        self.stage = Handshake.INITIALIZED
        try:
            if self._tenant is None:
                self._tenant = self.endpoint.tenants.enter(self.client.principal, self.backend)
            if resume is None:
                self._session = self.endpoint.sessions.open(self.client, self._tenant)
            else:
                self._session = await self.endpoint.attach(
                    resume, self.client, self._tenant, by_force=by_force
                )
        except BaseException:
            self.stage = Handshake.NEW
            raise
        self._session.extended = extended
        if self.is_congested:
            self._session.valve.shut()
        return self._session

    async def finish(self) -> list[int]:
        """End the client's session; it may open another one.  Return who could not be ended."""
        session, self._session = self.session, None
        self.stage = Handshake.NEW
        try:
            return await self.endpoint.finish(session)
        finally:
            self.unsubscribe()

    def unsubscribe(self) -> None:
        """Tell this client no more events of other processes than its session's."""
        subscription, self.subscription = self.subscription, None
        if subscription is not None:
            subscription.end()

    @contextmanager
    def waiting_for_end(self, *, counted: bool) -> Iterator[None]:
        """Wait for the end of a process, which may take long if it is ``counted``.

        Raises:
            LimitReached: Too many wait already.
        """
        if counted and self._waiting >= self.endpoint.limits.waiting_ends:
            most = self.endpoint.limits.waiting_ends
            raise LimitReached("requests waiting for the end of a process", most, name="session.waiting_ends")
        self._waiting += counted
        try:
            yield
        finally:
            self._waiting -= counted

    def gate(self, method: Method) -> None:
        if not method.family:
            return
        if self._session is None:
            raise OutOfTurn(f"client must call initialize before using {method.family} methods")
        if self.stage is not _READY:
            raise OutOfTurn(f"client must send initialized before using {method.family} methods")

    def notified(self, notification: Notification) -> None:
        if notification.method != "initialized":
            raise Breach(f"unexpected notification `{notification.method}`")
        if self._session is None:
            raise Breach("`initialized` was sent before `initialize`")
        self.stage = Handshake.READY

    def answered(self, response: Response) -> None:
        raise Breach(f"response to a request that was never sent: id {response.id}")

    def congested(self) -> None:
        self.is_congested = True
        if self._exchanges is not None:
            self._exchanges.hold()
        if self._session is not None:
            self._session.valve.shut()

    def drained(self) -> None:
        self.is_congested = False
        if self._exchanges is not None:
            self._exchanges.go_on()
        if self.subscription is not None:
            self.subscription.drained()
        if self._session is not None:
            self._session.valve.open()

    def malformed(self, detail: str) -> bytes:
        if self.client.transport == "stdio":
            source = "JSON-RPC message from exec-server stdio"
        else:
            source = f"websocket JSON-RPC message from exec-server websocket {self.client.peer}"
        return jsonrpc.error(
            jsonrpc.UNPARSED, INVALID_REQUEST, f"failed to parse {source}: {detail}", MALFORMED
        )

    def explain(self, error: HoldfastError) -> WireError:
        return explain(error)

    def usage(self) -> Mapping[str, int]:
        return {
            "session.names": 0 if self._session is None else len(self._session),
            "session.name_bytes": 0 if self._session is None else self._session.size,
            "session.waiting_ends": self._waiting,
            "http.connection_requests": 0 if self._exchanges is None else len(self._exchanges),
            "file.handles": 0 if self._files is None else len(self._files.handles),
            "file.connection_calls": 0 if self._files is None else self._files.locks.running,
        }

    def ended(self) -> None:
        if self._files is not None:
            self._files.close()
        self.unsubscribe()
        if self._session is not None and self._session.client is self.client:
            self.endpoint.leave(self._session, self.client)
        tenant, self._tenant = self._tenant, None
        if tenant is not None:
            self.endpoint.tenants.leave(tenant)


class ExecEndpoint(ExecState):
    """Implements ``dialect.Endpoint``."""

    def __init__(
        self,
        backend: HostedBackend,
        methods: Mapping[str, Method],
        *,
        loop: asyncio.AbstractEventLoop,
        limits: SessionLimits | None = None,
        http_limits: HttpLimits | None = None,
        file_limits: FileLimits | None = None,
        sandbox_limits: SandboxLimits | None = None,
        webhooks: WebhookSender | None = None,
        places: CodexPlaces | None = None,
    ) -> None:
        super().__init__(
            backend,
            loop=loop,
            limits=limits,
            http_limits=http_limits,
            file_limits=file_limits,
            sandbox_limits=sandbox_limits,
            webhooks=webhooks,
            places=places,
        )
        self.methods = methods

    def pick(self, text: bytes) -> ExecEndpoint:
        return self

    def greet(self, client: Client) -> ExecConversation:
        return ExecConversation(self, client)
