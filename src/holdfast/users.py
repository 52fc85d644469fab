"""Users that processes are started as: how requests name them, and what a process needs of one (pure)."""

from __future__ import annotations

from .errors import UserRefused
from .faults import UserFault
from .value import value

LONGEST = 256
"""Characters of a name; no system has longer ones."""

HIGHEST = 2**32 - 2
"""The highest number of a user or a group: the next one means to the kernel to leave it as it is."""


@value
class Credentials:
    """What a process needs to belong to a user."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    """The supplementary groups."""
    variables: tuple[tuple[str, str], ...]
    """HOME, USER, LOGNAME and SHELL."""
    own: bool = False
    """Whether it is the server's own user: then the process keeps what the server has."""


@value
class User:
    """A user that a process is started as."""

    name: str
    """As the request has it: a name, or numbers such as ``1000`` or ``1000:1000``."""
    credentials: Credentials | None = None
    """What the host knows of that user; None until it was asked."""


def numbers_of(name: str) -> tuple[int, int | None] | None:
    """Return the numbers of the user and of the group, if a request names them by numbers; None for a name.

    Raises:
        UserRefused: No user can be called that.
    """
    if not name or len(name) > LONGEST or not name.isprintable():
        reason = f"a user is a name of at most {LONGEST} printable characters, or numbers"
        raise UserRefused(name[:LONGEST], UserFault.MALFORMED, reason)
    user, colon, group = name.partition(":")
    if not colon and not _is_number(user):
        return None
    numbers = [int(text) for text in ([user, group] if colon else [user]) if _is_number(text)]
    if len(numbers) != 1 + len(colon) or max(numbers) > HIGHEST:
        reason = f"numbers are UID or UID:GID, each at most {HIGHEST}"
        raise UserRefused(name, UserFault.MALFORMED, reason)
    return numbers[0], numbers[1] if colon else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
