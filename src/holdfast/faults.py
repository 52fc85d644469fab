"""What errors tell beside their sentences: which of several things is at fault (pure)."""

from __future__ import annotations

import errno
import os
from enum import Enum
from typing import TYPE_CHECKING

from .value import value

if TYPE_CHECKING:
    from typing import Self


class Fault(Enum):
    """What was wrong with a start, so that a client need not guess."""

    PROGRAM = "program"
    """The program: missing, not executable, not a program."""
    DIRECTORY = "directory"
    """The working directory: missing, not a directory, not permitted."""
    ARGUMENT = "argument"
    """An argument or variable that cannot be handed to any program."""
    SYSTEM = "system"
    """The host: out of processes, memory, descriptors or terminals."""
    USER = "user"
    """The user: the system would not change to it."""
    SANDBOX = "sandbox"
    """The sandbox: it could not be made, or the program is not to be seen in it."""


@value
class ProgramSearch:
    """A lookup of a program by its bare name."""

    path: str | None
    """The child's PATH; None if it has none."""


class UserFault(Enum):
    """Why nothing is started as a user, so that a client need not guess."""

    MALFORMED = "malformed"
    """No user can be called that."""
    UNKNOWN = "unknown"
    """The host has no such user."""
    NOT_ROOT = "notRoot"
    """The server may not become another user."""
    LOOKUP = "lookup"
    """The user database of the host cannot be asked, or does not answer in time."""
    SANDBOX = "sandbox"
    """There is a sandbox as well, and no other user is put into one."""


class HeaderFault(Enum):
    """What is wrong with a header of an HTTP request."""

    NAME = "name"
    VALUE = "value"
    MISSING = "missing"
    """The variable is not set, or is no text."""
    EMPTY = "empty"
    """The variable is set to nothing."""
    FORBIDDEN = "forbidden"
    """The variable is nobody's to send."""


class HttpFault(Enum):
    """How far an HTTP request came, so that a client need not guess."""

    SENDING = "sending"
    """There is no response: no connection, no certificate, no HTTP."""
    TIMEOUT = "timeout"
    """There is no response within its time."""
    NO_TIME = "noTime"
    """The request had a timeout of 0."""
    REDIRECTS = "redirects"
    """There were too many redirects in a row."""
    SCHEME = "scheme"
    """A redirect to something that is neither http nor https."""
    BODY = "body"
    """The body of the response broke off."""
    BODY_TIMEOUT = "bodyTimeout"
    """The body of the response did not end within the time."""


class LinkFault(Enum):
    """Why there is no connection to a server, so that a client need not guess what to do."""

    BROKEN = "broken"
    """There was one, and it ended."""
    UNREACHABLE = "unreachable"
    """Nobody answers at the address."""
    NAME = "name"
    """No host has the name in the URL."""
    PROTOCOL = "protocol"
    """Somebody answers, in another protocol: TLS or none of it, or no server of ours."""
    CERTIFICATE = "certificate"
    """The server's certificate cannot be trusted."""
    TOKEN = "token"  # noqa: S105  (no secret)
    """The server asks for a token, or for another one."""
    FORBIDDEN = "forbidden"
    """The system or the server does not permit this client."""
    FULL = "full"
    """The server has no room for another client, or another one of this principal."""


class _SystemFault(OSError):
    """Mixed into errors about files: the members that Python's own have.

    It has the system's number as ``errno``, the words for it as ``strerror`` and the path as ``filename``,
    which is None until somebody who knows it puts it there.
    """

    number: int

    def __new__(cls, *facts: object, **named: object) -> Self:
        # ``OSError`` takes its members here, and would take our facts for them.
        return super().__new__(cls)

    def _know(self, number: int, *facts: object) -> None:
        self.args = facts  # ``OSError`` has not taken them.
        self.number = self.errno = number
        self.strerror = os.strerror(number)
        self.filename: str | None = None


PYTHONS_OWN: dict[int, type[OSError]] = {
    errno.ENOENT: FileNotFoundError,
    errno.EEXIST: FileExistsError,
    errno.EACCES: PermissionError,
    errno.EPERM: PermissionError,
    errno.EISDIR: IsADirectoryError,
    errno.ENOTDIR: NotADirectoryError,
}
"""The classes of Python for what goes wrong with paths.  The others, such as ``TimeoutError``, would be
taken for something that happened to the connection."""
