"""Errors as programs read them: a kind and its facts, in the data of an error answer (pure).

The words and codes of an error belong to each dialect.  The data is the same in all of them: ``kind``, which
is one of the table, and the facts of that kind.  A client of ours makes the same error of it again, by this
table and never by a name that it was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from holdfast import errors as e

from .paths import printable
from .shapes import camel

_LONGEST = 1024
"""Characters of a text in the data: whoever sent a longer one knows it."""


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("no text")
    return value


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("no integer")
    return value


def _errno(value: Any) -> int:
    number = _integer(value)
    if not 0 <= number < 2**31:
        raise ValueError("no error number of any system")
    return number


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError("no number")
    return value


_REQUIRED = object()


class _Fact:
    """One fact of an error: an attribute, which is a parameter of its constructor under the same name."""

    __slots__ = ("absent", "attribute", "read", "wire")

    def __init__(
        self,
        attribute: str,
        read: Callable[[Any], Any] = _text,
        *,
        wire: str = "",
        absent: object = _REQUIRED,
    ) -> None:
        """
        Args:
            read: From JSON to the attribute; raises ``ValueError``.
            wire: What it is called on the wire, if not by the attribute's name.
            absent: The value that is left out, if there is one.
        """
        self.attribute = attribute
        self.read = read
        self.wire = wire or camel(attribute)
        self.absent = absent

    def find(self, data: Mapping[str, Any]) -> Any:
        """The fact in the data of an answer; raises ``ValueError``."""
        if self.wire not in data and self.absent is not _REQUIRED:
            return self.absent
        return self.read(data.get(self.wire))


_NAME = _Fact("name")
_REASON = _Fact("reason")
_SESSION = _Fact("session")
_SUBJECT = _Fact("subject")
_FIELD = _Fact("field", absent=None)

_FACTS: dict[type[e.HoldfastError], tuple[_Fact, ...]] = {
    e.BadRequest: (_REASON, _FIELD),
    e.Unsupported: (_Fact("feature"),),
    e.SandboxUnavailable: (_REASON,),
    e.UserRefused: (_Fact("user"), _Fact("fault", e.UserFault), _REASON),
    e.OutOfTurn: (_REASON,),
    e.RequestCancelled: (),
    e.Forbidden: (_Fact("what", wire="forbidden"), _SUBJECT),
    e.ConfigBroken: (_REASON,),
    e.AuditFailed: (_REASON,),
    e.UnknownMethod: (_Fact("method"),),
    e.UnknownProcess: (_NAME,),
    e.NameTaken: (_NAME,),
    e.NameAmbiguous: (_NAME,),
    e.StillRunning: (_NAME,),
    e.StillStarting: (_NAME,),
    e.StartCancelled: (_NAME,),
    e.NoTerminal: (),
    e.SessionUnknown: (_SESSION,),
    e.SessionBusy: (_SESSION,),
    e.SpawnFailed: (
        _Fact("fault", e.Fault),
        _SUBJECT,
        _REASON,
        _Fact("number", _errno, wire="errno", absent=None),
    ),
    e.HostUnfit: (_REASON,),
    e.StdinFailed: (),
    e.SignalFailed: (_REASON,),
    e.FileFailed: (_Fact("number", _errno, wire="errno"), _Fact("path", absent="")),
    e.FileRefused: (_REASON,),
    e.FileUnsupported: (_REASON,),
    e.TooManyEntries: (_Fact("count", _integer), _Fact("limit", _integer)),
    e.UnknownHandle: (_NAME,),
    e.HandleTaken: (_NAME,),
    e.BadUrl: (_REASON, _FIELD),
    e.BadHeader: (_NAME, _Fact("fault", e.HeaderFault), _Fact("variable", absent=None)),
    e.HttpFailed: (_Fact("fault", e.HttpFault), _SUBJECT, _REASON),
    e.LimitReached: (_Fact("limit"), _Fact("value", _number), _Fact("name", absent="")),
    e.LinkLost: (_REASON,),
    e.OutcomeUnknown: (_Fact("what"),),
    e.ProcessLost: (_NAME, _REASON),
    e.OutputGap: (_Fact("first", _integer), _Fact("last", _integer), _Fact("size", _integer, absent=None)),
    e.Unexpected: (_Fact("code", _integer), _Fact("message")),
}


def _kind(cls: type[e.HoldfastError]) -> str:
    return cls.__name__[0].lower() + cls.__name__[1:]


_CLASSES = {_kind(cls): cls for cls in _FACTS}


def kinds() -> Mapping[str, tuple[str, ...]]:
    """Every kind of error, and what its facts are called on the wire."""
    return {kind: tuple(fact.wire for fact in _FACTS[cls]) for kind, cls in _CLASSES.items()}


def data_of(error: e.HoldfastError) -> dict[str, Any]:
    """The kind of an error and its facts, for the data of an answer; a fact that says nothing is left out."""
    for cls in type(error).__mro__:
        if cls in _FACTS:
            data: dict[str, Any] = {"kind": _kind(cls)}
            for fact in _FACTS[cls]:
                value = getattr(error, fact.attribute)
                if value != fact.absent:
                    data[fact.wire] = _wire_value(value)
            return data
    return {"kind": "refused" if isinstance(error, e.Refused) else "failed"}


MALFORMED = {"kind": "malformed"}
"""The data of the answer to what is no message."""

INTERNAL = {"kind": "internalError"}
"""The data of the answer to a request that found a mistake of ours."""


def _wire_value(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return printable(value[:_LONGEST]) if isinstance(value, str) else value


def error_of(data: Any) -> e.HoldfastError | None:
    """The error that the data of an answer tells; None if it does not, as that of a foreign server."""
    kind = data.get("kind") if isinstance(data, dict) else None
    cls = _CLASSES.get(kind) if isinstance(kind, str) else None
    if cls is None:
        return None
    try:
        return cls(**{fact.attribute: fact.find(data) for fact in _FACTS[cls]})
    except ValueError:
        return None
