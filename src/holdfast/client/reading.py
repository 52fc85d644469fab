"""What a server says of processes, as the values every layer shares (pure)."""

from __future__ import annotations

import re
import signal as signals
from collections.abc import Sequence
from typing import Any

from holdfast.dialects import base64, paths
from holdfast.model import (
    Chunk,
    Denied,
    Exit,
    Gap,
    HostInfo,
    Kind,
    Listing,
    Outcome,
    Page,
    Stream,
    Usage,
)
from holdfast.sandbox import NO_SANDBOXES, Denial, Guarantees, Protection, SandboxBackendName

from . import answers as a

_OUTPUT = re.compile(
    rb'\{"method":"process/output","params":\{"processId":"([^"\\]*)",'
    rb'"seq":(\d+),"stream":"(stdout|stderr|pty)","chunk":"'
)
_TAIL = b'"}}'
_HEAD_MOST = 1024
"""Bytes in which the base64 has begun; a process with a longer name is told of more slowly."""
_STREAMS = {b"stdout": Stream.STDOUT, b"stderr": Stream.STDERR, b"pty": Stream.PTY}


def output(message: bytes | memoryview) -> tuple[bytes, Chunk] | None:
    """The name and the chunk, if the message is output in the form that servers write; else None.

    The hot path: most messages are this, and most of them is base64, which nobody looks at twice.
    """
    found = _OUTPUT.match(bytes(message[:_HEAD_MOST]))
    if found is None or bytes(message[-3:]) != _TAIL:
        return None
    name, seq, stream = found.groups()
    try:
        data = base64.decode_bytes(message[found.end() : -3])
    except ValueError:
        return None
    return name, Chunk(int(seq), _STREAMS[stream], data)


def chunk(found: a.OutputChunk | a.ProcessOutput) -> Chunk:
    return Chunk(found.seq, Stream(found.stream), base64.decode(found.chunk))


def outcome(found: a.Outcome) -> Outcome:
    try:
        kind = Kind(found.kind)
    except ValueError:
        kind = Kind.EXIT  # A newer server has more words.
    number = None if found.signal is None else _signal(found.signal)
    return Outcome(kind, found.exit_code, number, found.by, found.detail)


def _signal(name: str) -> int | None:
    try:
        return signals.Signals[name].value
    except KeyError:
        found = re.fullmatch(r"SIG(RTMIN\+)?([0-9]{1,3})", name)
        if found is None:
            return None
        return int(found[2]) + (signals.SIGRTMIN if found[1] else 0)


def ending(found: a.Ending) -> Exit:
    """The end of a process that has one."""
    code = -1 if found.exit_code is None else found.exit_code
    if found.outcome is not None:
        end = outcome(found.outcome)
    elif found.sandbox_denied:
        end = Outcome(Kind.SANDBOX_DENIED, code)
    else:
        end = Outcome(Kind.EXIT, code)
    used = found.usage
    usage = None if used is None else Usage(used.user_ms * 1000, used.system_ms * 1000, used.max_rss_bytes)
    denied = None
    if found.sandbox_denied or found.denial is not None:
        denials = tuple(Denial(one.op, one.path, one.count) for one in found.denials)
        denied = Denied(found.sandbox_denied, found.denial == "exact", denials)
    return Exit(code, end, usage, tuple(found.held_by), denied)


def page(found: a.ReadResult) -> Page:
    lost = found.gap
    gap = None if lost is None else Gap(lost.from_seq, lost.to_seq, lost.bytes)
    return Page(
        [chunk(one) for one in found.chunks],
        found.next_seq,
        ending(found) if found.exited else None,
        found.closed,
        gap,
    )


def listing(found: a.ListedProcess) -> Listing:
    return Listing(
        name=found.process_id,
        pid=found.pid,
        argv=found.argv,
        cwd=path(found.cwd) or found.cwd,
        terminal=found.tty,
        started=found.started_at_ms / 1000,
        state=found.state,
        exit_code=found.exit_code,
        outcome=None if found.outcome is None else outcome(found.outcome),
        next_seq=found.next_seq,
        retained=found.retained_bytes,
        kept=found.kept,
    )


def path(uri: str | None) -> str | None:
    return None if uri is None else paths.parse(uri).path


def host_info(found: a.EnvironmentInfo) -> HostInfo:
    extensions = found.capabilities.holdfast
    return HostInfo(
        shell=found.shell.path,
        cwd=path(found.cwd) or "/",
        home=path(found.user_home_dir),
        temp=path(found.temp_dir) or "/tmp",  # noqa: S108  (what a host has that does not tell)
        temp_dirs=_paths(found.temporary_directories),
        provider=found.provider_id,
        version=found.executor_version,
        sandboxes=_sandboxes(extensions.sandbox if extensions else None),
    )


def _sandboxes(found: dict[str, Any] | None) -> Guarantees:
    """What a server says its sandboxes are worth; whatever it says otherwise is passed over."""
    try:
        backend = SandboxBackendName((found or {})["backend"])
    except (KeyError, ValueError):
        return NO_SANDBOXES
    assert found is not None
    word, reason, weaknesses = (found.get(name) for name in ("protectsSubpaths", "reason", "weaknesses"))
    protection = word.upper() if isinstance(word, str) else ""
    return Guarantees(
        backend,
        Protection[protection] if protection in Protection.__members__ else Protection.NONE,
        exact=found.get("denial") == "exact",
        weaknesses=tuple(each for each in weaknesses if isinstance(each, str))
        if isinstance(weaknesses, list)
        else (),
        reason=reason if isinstance(reason, str) else "",
    )


def _paths(uris: Sequence[str]) -> tuple[str, ...]:
    return tuple(there for there in map(path, uris) if there is not None)


read_result = a.reader(a.ReadResult)
