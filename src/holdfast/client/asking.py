"""What a process is asked for with, on the wire, and what a server must have for it (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from holdfast.errors import BadRequest, Unsupported
from holdfast.model import EnvironmentPolicy, Limits, Spec
from holdfast.protocol.paths import uri_of
from holdfast.protocol.start import (
    EnvPolicy,
    InheritMode,
    RecordParams,
    ResourceLimits,
    StartParams,
    TerminalSize,
)

if TYPE_CHECKING:
    from holdfast.place import Naming
    from holdfast.protocol.sandbox import SandboxContext
    from holdfast.recordings import HostRecording
    from holdfast.sandbox import Sandbox


def start_params(
    spec: Spec, identifier: str, naming: Naming, features: Collection[str], *, window: int
) -> StartParams:
    """Return the params of ``process/start`` for a server with these features.

    Raises:
        Unsupported: What was asked for cannot be had there.
        BadRequest: A number is too large.
    """
    terms = spec.terms
    for feature in _extensions(spec, naming):
        if feature not in features:
            raise Unsupported(f"`{feature}`")
    size = None
    if spec.terminal is not None and "size" in features:
        size = TerminalSize(spec.terminal.rows, spec.terminal.cols)
    try:
        return StartParams(
            process_id=identifier,
            argv=list(spec.argv),
            cwd=uri_of(spec.cwd),
            env={key: value for key, value in spec.env.items() if value is not None},
            tty=spec.terminal is not None,
            env_policy=None if spec.env_policy is None else _policy(spec.env_policy, spec),
            pipe_stdin=spec.stdin,
            arg0=spec.arg0,
            sandbox=_context(spec.sandbox),
            size=size,
            timeout_ms=_milliseconds(terms.timeout),
            idle_timeout_ms=_milliseconds(terms.idle_timeout),
            grace_ms=_milliseconds(terms.grace or None),
            # Who waits for output can leave off by himself.
            drain_ms=_milliseconds(terms.drain) if "drain" in features else None,
            retain_bytes=naming.retain,
            output_bytes_limit=terms.output,
            truncate_output=terms.truncate,
            limits=None if terms.limits == Limits() else _limits(terms.limits),
            idempotent="idempotentStart" in features,
            window=window or None,
            keep=naming.keep,
            name=naming.name if "names" in features else None,
            auto_remove=naming.auto_remove,
            notify_url=naming.notify,
            user=None if spec.user is None else spec.user.name,
            record=None if spec.record is None else _record(spec.record),
        )
    except ValueError as error:
        raise BadRequest(f"a number is larger than the protocol has room for: {error}") from None


def _context(sandbox: Sandbox | None) -> SandboxContext | None:
    if sandbox is None:
        return None
    # Most programs do not use one, and this is a module of its own.
    from holdfast.protocol.sandbox import context_of

    return context_of(sandbox)


def _record(terms: HostRecording) -> RecordParams:
    return RecordParams(
        path=uri_of(terms.path),
        input=terms.input,
        max_bytes=terms.max_bytes,
        sandbox=_context(terms.sandbox),
    )


def _extensions(spec: Spec, naming: Naming) -> Iterator[str]:
    """The features of a server without which what was asked for cannot be had."""
    terms = spec.terms
    wishes = {
        "timeout": terms.timeout is not None,
        "idleTimeout": terms.idle_timeout is not None,
        "grace": bool(terms.grace),
        "outputLimit": terms.output is not None,
        "truncateOutput": terms.truncate,
        "limits": terms.limits != Limits(),
        "retainBytes": naming.retain is not None,
        "keep": naming.keep,
        "autoRemove": naming.auto_remove,
        "notify": naming.notify is not None,
        "user": spec.user is not None,
        "idempotentStart": naming.idempotent,
        "record": spec.record is not None,
    }
    return (feature for feature, wished in wishes.items() if wished)


def _policy(policy: EnvironmentPolicy, spec: Spec) -> EnvPolicy:
    # The protocol has no word for a variable that is taken away by name; a pattern without stars is one.
    taken = tuple(key for key, value in spec.env.items() if value is None)
    return EnvPolicy(
        inherit=InheritMode(policy.inherit.value),
        ignore_default_excludes=policy.ignore_default_excludes,
        exclude=[*policy.exclude, *taken],
        set={key: value for key, value in policy.set if key not in taken},
        include_only=list(policy.include_only),
    )


def _limits(limits: Limits) -> ResourceLimits:
    return ResourceLimits(
        memory_bytes=limits.memory,
        cpu_seconds=None if limits.cpu is None else max(1, round(limits.cpu)),
        processes=limits.processes,
        open_files=limits.files,
    )


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else max(1, int(seconds * 1000))
