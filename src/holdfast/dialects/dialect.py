"""What a server must know of a dialect, what a dialect offers, and what it must know of its client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from functools import partial
from typing import Any, Protocol

from holdfast.errors import HoldfastError
from holdfast.principal import Grant, Principal
from holdfast.protocol.shapes import Shape, Signature
from holdfast.value import value
from holdfast.wire.jsonrpc import Envelope, Id, Notification, Response


class Client(Protocol):
    """The client at the other end of a connection, as a dialect sees it."""

    @property
    def transport(self) -> str:
        """``websocket`` or ``stdio``."""

    @property
    def peer(self) -> str:
        """The client's address, for error texts; empty if it has none."""

    @property
    def principal(self) -> Principal:
        """Who it is, and what it may do."""

    @property
    def comes_back(self) -> bool:
        """Whether the client can lose this connection and make another one."""

    @property
    def send(self) -> Callable[..., None]:
        """Sends one message, given in parts.  Never waits; the order of calls is kept."""

    def send_long(self, message: LongResult) -> None:
        """Send a message that is given piece by piece, as the result of a request can be.

        What is sent from now on comes behind it, unless another one is being sent: then
        it comes behind that.
        """

    def cancel(self, key: Id) -> bool:
        """Cancel the request that the client gave this identifier; return whether it was waiting."""

    async def is_alive(self, within: float) -> bool:
        """Ask the client for a sign of life, and wait for it that many seconds at the most."""

    def cut(self, reason: str) -> None:
        """End the connection.  The conversation's ``ended`` is called before this returns."""


class Breach(Exception):
    """The client broke the protocol; the connection ends and this says why."""


@value
class WireError:
    """An error as it goes out."""

    code: int
    message: str
    data: Any = None


@value
class Sequel:
    """A result, and what is to be done once it is answered."""

    result: Any
    rest: Coroutine[Any, Any, None]
    """Awaited once, in the task of the request, which still counts as one; cancelled with the connection."""


@value
class Postponed:
    """A result that can be had when something has happened.

    What waits is this object and not a task with a coroutine, which costs ten times as much.
    """

    listen: Callable[[Callable[[], object]], Callable[[], None]]
    """Begins to wait: calls its argument once, when it has happened.  What it returns stops that."""
    result: Callable[[], Any]
    """What a handler may give, a ``Postponed`` included.  Called once it has happened, and not before."""


@value
class LongResult:
    """A result that is too long to be kept in memory: JSON, given piece by piece.

    The answer is sent as one message.  Whatever else is to be sent waits behind it,
    and each piece until the client has taken the one before.  If a piece cannot be
    had, the connection is cut: half an answer must not look like a whole one.
    """

    head: bytes
    pieces: AsyncGenerator[bytes, None]
    tail: bytes
    close: Callable[[], None]
    """Called once, when nothing more is wanted of it."""


@value
class Method:
    """One method of a dialect."""

    decode: Callable[[Any], Any]
    """Params from the wire to their type; raises ``BadRequest``."""
    handle: Callable[[Any, Any], Any]
    """(conversation, params) -> result, or a coroutine of it if there is something to wait for.

    Raises ``HoldfastError``.  What must happen in the order of the requests
    happens before it returns, or before the coroutine first waits.  If there is
    one event to wait for, it may give a ``Postponed``.  One that
    starts a process may give a future instead of the result: then the process
    runs, and the answer comes when the future has it.  A coroutine may give a
    ``Sequel``, if something follows the answer, or a ``LongResult``.
    """
    family: str = ""
    """What the method is about, for error texts."""
    name_of: Callable[[Any], str | None] = lambda params: None
    """The process that a request is about: it waits while that process is starting."""
    starts: bool = False
    """Starts that process.  Goes on to its end when the connection is lost."""
    alone: bool = False
    """While it waits, whatever the client sends next waits behind it."""
    waits: bool = False
    """May be answered much later; such requests are counted and bounded."""
    free: bool = False
    """Every token allows it."""
    implied_by: tuple[str, ...] = ()
    """Methods with which a token allows this one, too: it follows or ends what they begin."""
    signature: Signature[Any, Any] | None = None
    """What it takes and answers, for reference pages and schemas; None if it is in none of them."""
    summary: str = ""
    """What it does, in a sentence for reference pages; empty if the first words of its handler say it."""

    def is_granted(self, name: str, grant: Grant) -> bool:
        """Whether a token allows it: by its name, which is ``name``, or because of another that it allows.

        The handshake, which is of no family, needs no grant: without it a client could not be told anything.
        """
        if self.free or not self.family:
            return True
        return any(map(grant.allows_method, (name, *self.implied_by)))


class Conversation(Protocol):
    """What one client and the server say to each other in one dialect, from the first message to the last."""

    @property
    def binary(self) -> bool:
        """Whether messages may come as binary data; if not, such are passed over."""

    @property
    def envelope(self) -> Envelope:
        """How this conversation's messages are wrapped."""

    def gate(self, method: Method) -> None:
        """Let a request pass, or raise: is it the time for this method?"""

    def notified(self, notification: Notification) -> None:
        """Take a notification.  Raises ``Breach``."""

    def answered(self, response: Response) -> None:
        """Take an answer to a request of ours.  Raises ``Breach``."""

    def congested(self) -> None:
        """The client is behind: no more output until ``drained``."""

    def drained(self) -> None:
        """The client has caught up."""

    def malformed(self, detail: str) -> bytes | None:
        """The answer to something that is no message; None to pass over it."""

    def explain(self, error: HoldfastError) -> WireError:
        """Say in this dialect what went wrong."""

    def usage(self) -> Mapping[str, int]:
        """How much of the client's limits is in use, by the names of the limits."""

    def ended(self) -> None:
        """End the conversation, because the connection is gone."""


class Endpoint(Protocol):
    """A set of methods that one connection may use."""

    @property
    def methods(self) -> Mapping[str, Method]: ...

    def pick(self, text: bytes) -> Endpoint:
        """The endpoint that a client means whose first message this is."""

    def greet(self, client: Client) -> Conversation:
        """Begin a conversation with a client that has connected."""

    def usage(self) -> Mapping[str, int]:
        """How much of the limits of all clients together is in use."""

    def close(self) -> None:
        """End everything that outlives connections.  There are no connections any more."""


class Pause:
    """Awaited, it lets everybody else have their turn; before the first one a request has no task."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        yield


@value
class ListedMethod:
    """A method that a client may call."""

    name: str
    params: type[Shape] | None
    """None for a method that takes none."""
    result: type[Shape]
    summary: str


@value
class Notice:
    """A notification in a catalog: its name, and the shape of its params."""

    name: str
    params: type[Shape] | None
    """None if whatever is there is ignored."""
    summary: str


@value
class Catalog:
    """Everything that may be said at one endpoint, in the order in which it is best read."""

    name: str
    """The endpoint's, as on the command line."""
    title: str
    calls: tuple[ListedMethod, ...]
    client_notifications: tuple[Notice, ...]
    """The notifications that a client may send."""
    server_notifications: tuple[Notice, ...]
    """The notifications that the server sends."""
    base64: frozenset[str]
    """Members that are bytes, in base64, wherever they occur."""
    stamped: bool = False
    """Whether the server's notifications say when they were sent."""


def listed(methods: Mapping[str, Method]) -> tuple[ListedMethod, ...]:
    """The methods of an endpoint's table, in its order, except those that have no signature."""
    return tuple(
        ListedMethod(
            each.signature.name,
            each.signature.params,
            each.signature.result,
            each.summary or _first_words(_function(each.handle)),
        )
        for each in methods.values()
        if each.signature is not None
    )


def notice(name: str, params: type[Shape]) -> Notice:
    """A notification; what its params say of themselves is the summary."""
    return Notice(name, params, _first_words(params))


def _function(handle: Any) -> Any:
    return _function(handle.func) if isinstance(handle, partial) else handle


def _first_words(documented: Any) -> str:
    """The first paragraph of a docstring, as one line."""
    return " ".join((documented.__doc__ or "").partition("\n\n")[0].split())
