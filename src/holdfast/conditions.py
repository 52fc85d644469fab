"""What to wait for of a process, and how a wait has ended: the values (pure)."""

from __future__ import annotations

from enum import StrEnum
from urllib.parse import urlsplit

from .errors import BadRequest
from .model import Exit
from .patterns import SearchPattern
from .value import value
from .web import parse_url, scheme_of

_URL_BYTES = 8192


class WaitEnd(StrEnum):
    """How a wait has ended."""

    MET = "met"
    """What was waited for is so."""
    EXITED = "exited"
    """The process has ended before."""
    TIMEOUT = "timeout"
    """Neither, in the time that there was."""


@value
class Condition:
    """What to wait for: exactly one of these."""

    port: int | None = None
    """A TCP port at the loopback address takes a connection."""
    url: str | None = None
    """An HTTP request is answered with a status below 400."""
    output: str | None = None
    """A regular expression (``SearchPattern``) is found in the output, also in what was printed before."""
    file: str | None = None
    """There is something at an absolute path."""

    def __str__(self) -> str:
        kinds = (("port", self.port), ("URL", self.url), ("output", self.output), ("file", self.file))
        return " and ".join(f"{kind} {what!r}" for kind, what in kinds if what is not None)


@value
class Waited:
    """How a wait has ended, and what is known of it."""

    end: WaitEnd
    line: str | None = None
    """The line in which the text was found, as far as it had come; of a long one the last 4,096 bytes."""
    seq: int | None = None
    """The number of the output with the end of that text."""
    status: int | None = None
    """The status of the URL, at the last attempt that was answered."""
    exit: Exit | None = None
    """How the process has ended, if it has."""
    trouble: str | None = None
    """Why the last attempt was none."""
    missed: bool = False
    """Whether output was dropped before it could be searched."""


def is_loopback(url: str) -> bool:
    """Whether a URL is one of this host, by its text alone."""
    host = urlsplit(url).hostname or ""
    if host in ("localhost", "::1"):
        return True
    parts = host.split(".")
    return len(parts) == 4 and parts[0] == "127" and all(part.isdecimal() for part in parts)


def prepared(condition: Condition) -> Condition | SearchPattern:
    """The condition in its plain form, or the pattern that it has.

    Raises:
        BadRequest: It is none, or more than one.
    """
    given = [name for name in ("port", "url", "output", "file") if getattr(condition, name) is not None]
    if len(given) != 1:
        raise BadRequest(
            "a wait needs exactly one of port, url, output and file", field=(given or ["port"])[0]
        )
    if condition.port is not None and not 0 < condition.port < 2**16:
        raise BadRequest(f"{condition.port} is no port", field="port")
    if condition.url is not None:
        if len(condition.url) > _URL_BYTES or scheme_of(condition.url) not in ("http", "https"):
            raise BadRequest("only http and https URLs can be waited for", field="url")
        return Condition(url=parse_url(condition.url))
    if condition.file is not None and not condition.file.startswith("/"):
        raise BadRequest("the path of a file to wait for must be absolute", field="file")
    if condition.output is not None:
        try:
            return SearchPattern(condition.output)
        except ValueError as error:
            raise BadRequest(f"this pattern cannot be waited for: {error}", field="output") from None
    return condition
