"""Runs a command to its end: input, output, and the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from subprocess import PIPE
from typing import TYPE_CHECKING, TextIO

from holdfast.errors import HoldfastError, LinkLost
from holdfast.model import Kind, Stream

from .capture import CaptureBuffer, Coding, HeadTail
from .completed import Completed, Omitted
from .handle import DRAIN, Handle
from .options import Options, Text

if TYPE_CHECKING:
    from .host import Host

Sinks = dict[Stream, Callable[[bytes], object]]
Captured = dict[Stream, CaptureBuffer]

_PIPES = (Stream.STDOUT, Stream.STDERR)


async def run_to_end(
    host: Host,
    argv: Sequence[Text],
    options: Options,
    *,
    given: bytes | str | None,
    capture: bool,
    shape: HeadTail | None = None,
    coding: Coding,
) -> Completed[bytes | str | None]:
    """Run a command to its end; see ``Host.run``."""
    if given is not None:
        if options.get("stdin") is not None:
            raise ValueError("stdin and input arguments may not both be used.")
        options["stdin"] = PIPE
    captured, sinks = _outputs(options, capture=capture, shape=shape)
    # The host enforces the drain, even if the connection is lost meanwhile.
    drain = options.setdefault("drain", DRAIN)
    handle = await host.start(argv, **options)
    try:
        handle.finish(None if given is None else coding.encode(given), drain=drain)
        async for chunk in handle.chunks():
            sinks[chunk.stream](chunk.data)
        await handle.wait()
    except LinkLost:
        raise
    except BaseException as error:
        handle.detach()
        try:
            await handle.end()
        except HoldfastError as further:
            error.add_note(f"The command may go on: {further}")
        raise
    return _completed(handle, options, captured, coding)


def _outputs(options: Options, *, capture: bool, shape: HeadTail | None) -> tuple[Captured, Sinks]:
    """Return the buffers, and what to do with each output; change the options to those of a start."""
    captured: Captured = {}
    sinks: Sinks = {}
    if shape is not None:
        # Also of an output that is joined or dropped, so that both of the result are there.
        captured = {Stream.STDOUT: CaptureBuffer(shape), Stream.STDERR: CaptureBuffer(shape)}
        options["stdout"] = options.get("stdout") or PIPE
        options["stderr"] = options.get("stderr") or PIPE
    elif capture:
        if options.get("stdout") is not None or options.get("stderr") is not None:
            raise ValueError("stdout and stderr arguments may not be used with capture_output.")
        options["stdout"] = options["stderr"] = PIPE
    if options.get("stdout") is None:
        options["stdout"] = PIPE
        sinks[Stream.STDOUT] = _passed_on_to(sys.stdout)
    elif options["stdout"] == PIPE:
        captured.setdefault(Stream.STDOUT, CaptureBuffer())
    if options.get("stderr") is None:
        options["stderr"] = PIPE
        sinks[Stream.STDERR] = _passed_on_to(sys.stderr)
    elif options["stderr"] == PIPE:
        captured.setdefault(Stream.STDERR, CaptureBuffer())
    sinks.update((stream, buffer.add) for stream, buffer in captured.items())
    return captured, sinks


def _passed_on_to(file: TextIO | None) -> Callable[[bytes], object]:
    """Return a function that writes bytes to one of our outputs; if there is none, they are dropped."""

    def write(data: bytes) -> None:
        if file is None:
            return
        raw = getattr(file, "buffer", None)
        if raw is None:  # It was replaced by a text stream, as in notebooks.
            file.write(data.decode(errors="replace"))
        else:
            file.flush()
            raw.write(data)
        file.flush()

    return write


def _completed(
    handle: Handle, options: Options, captured: Captured, coding: Coding
) -> Completed[bytes | str | None]:
    nothing: tuple[bytes | str | None, int] = (None, 0)
    kept = {stream: buffer.finish(coding) for stream, buffer in captured.items()}
    stdout, stdout_omitted = kept.get(Stream.STDOUT, nothing)
    stderr, stderr_omitted = kept.get(Stream.STDERR, nothing)
    code, outcome = handle.returncode, handle.outcome
    assert code is not None
    assert outcome is not None
    limits = {Kind.TIMEOUT: options.get("timeout"), Kind.IDLE_TIMEOUT: options.get("idle_timeout")}
    return Completed(
        handle.args,
        code,
        stdout,
        stderr,
        outcome,
        handle.usage,
        handle.denials,
        timeout=limits.get(outcome.kind),
        omitted=Omitted(
            stdout_omitted,
            stderr_omitted,
            handle.dropped,
            *(captured[stream].omitted_at if stream in captured else 0 for stream in _PIPES),
        ),
        identifier=handle.identifier,
    )
