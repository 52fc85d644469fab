"""What is written down of a process beside its output, as bytes and back."""

from __future__ import annotations

import marshal
from typing import Any

from holdfast.engine.ended import pack_exit, unpack_exit
from holdfast.host.outliving import HostFacts
from holdfast.model import PLAIN, UNLIMITED, Cause, Exit, Kind, Limits, ProcessTerms
from holdfast.principal import Identity
from holdfast.value import replace, value

_FORM = 1
"""Of these bytes: a server that finds another number does not know what they mean."""


class UnknownForm(ValueError):
    """The bytes are not of a form that this version knows."""


@value
class ProcessFacts:
    """What a server that goes on after another has to know of a process, and what does not change."""

    note: bytes
    """What the dialect knows of it; the engine does not read that."""
    identity: Identity
    """The principal on whose account it runs."""
    terminal: bool
    stdin: bool
    terms: ProcessTerms = PLAIN
    host: HostFacts = HostFacts()
    audit: str | None = None
    """The reference of its record in the audit log, if there is one."""


def _values(found: object, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(getattr(found, name) for name in names)


_TERMS = ("timeout", "idle_timeout", "grace", "output", "drain", "truncate")
_LIMITS = ("memory", "cpu", "processes", "files")
_HOST = ("groups", "controllers", "confined")


def pack_facts(facts: ProcessFacts) -> bytes:
    """The facts as bytes."""
    terms = None
    if facts.terms is not PLAIN:
        limits = None if facts.terms.limits is UNLIMITED else _values(facts.terms.limits, _LIMITS)
        # Without the last one if it says nothing: a server before this one does not know it.
        terms = _values(facts.terms, _TERMS if facts.terms.truncate else _TERMS[:-1]), limits
    fixed = (facts.note, facts.identity, facts.terminal, facts.stdin, facts.audit)
    return marshal.dumps((_FORM, fixed, terms, _values(facts.host, _HOST)))


def unpack_facts(data: bytes) -> ProcessFacts:
    """The facts in these bytes, which were checked to be those that were written.

    Raises:
        UnknownForm: Another version has written them.
    """
    form, *rest = marshal.loads(data)  # noqa: S302  (our own bytes: the arena keeps a checksum of them)
    if form != _FORM:
        raise UnknownForm(f"facts of form {form}, not {_FORM}")
    (note, identity, terminal, stdin, audit), packed, host = rest
    terms = PLAIN
    if packed is not None:
        plain, limits = packed
        terms = ProcessTerms(**dict(zip(_TERMS, plain, strict=False)))
        if limits is not None:
            terms = replace(terms, limits=Limits(*limits))
    return ProcessFacts(note, identity, terminal, stdin, terms, HostFacts(*host), audit)


def pack_cause(cause: Cause | None) -> bytes:
    """Why a process is ended, as bytes; None if it had ended, and only its leftovers are."""
    return marshal.dumps(None if cause is None else (cause.kind.value, cause.by, cause.detail))


def unpack_cause(data: bytes) -> Cause | None:
    """The cause in these bytes."""
    found = marshal.loads(data)  # noqa: S302  (as above)
    return None if found is None else Cause(Kind(found[0]), *found[1:])


def pack_end(end: Exit, drain_at: float | None) -> bytes:
    """How a process ended, and when its output is no longer waited for."""
    return marshal.dumps((pack_exit(end), drain_at))


def unpack_end(data: bytes) -> tuple[Exit, float | None]:
    """What ``pack_end`` has packed."""
    packed, drain_at = marshal.loads(data)  # noqa: S302  (as above)
    return unpack_exit(packed), drain_at
