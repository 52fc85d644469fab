"""Runs a command to its end: input, output, and the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from subprocess import PIPE
from typing import TYPE_CHECKING, TextIO

from holdfast.errors import HoldfastError, LinkLost
from holdfast.model import Kind, Stream

from .completed import Completed
from .handle import DRAIN, Handle
from .options import Options, Text

if TYPE_CHECKING:
    from .host import Host

Sinks = dict[Stream, Callable[[bytes], object]]


class Coding:
    """Whether input and output are text, and in which encoding."""

    def __init__(
        self, *, text: bool | None = None, encoding: str | None = None, errors: str | None = None
    ) -> None:
        self._is_text = bool(text or encoding or errors)
        self._encoding = encoding or "utf-8"
        self._errors = errors or "strict"

    def encode(self, given: bytes | str) -> bytes:
        return given.encode(self._encoding, self._errors) if isinstance(given, str) else given

    def decode(self, data: bytearray | None) -> bytes | str | None:
        if data is None:
            return None
        if not self._is_text:
            return bytes(data)
        # As ``subprocess`` does it.
        return data.decode(self._encoding, self._errors).replace("\r\n", "\n").replace("\r", "\n")


async def run_to_end(
    host: Host,
    argv: Sequence[Text],
    options: Options,
    *,
    given: bytes | str | None,
    capture: bool,
    coding: Coding,
) -> Completed[bytes | str | None]:
    """Run a command to its end; see ``Host.run``."""
    if given is not None:
        if options.get("stdin") is not None:
            raise ValueError("stdin and input arguments may not both be used.")
        options["stdin"] = PIPE
    captured, sinks = _outputs(options, capture=capture)
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
    stdout, stderr = (coding.decode(captured.get(stream)) for stream in (Stream.STDOUT, Stream.STDERR))
    return _completed(handle, options, stdout, stderr)


def _outputs(options: Options, *, capture: bool) -> tuple[dict[Stream, bytearray], Sinks]:
    """Return the buffers, and what to do with each output; change the options to those of a start."""
    if capture:
        if options.get("stdout") is not None or options.get("stderr") is not None:
            raise ValueError("stdout and stderr arguments may not be used with capture_output.")
        options["stdout"] = options["stderr"] = PIPE
    captured: dict[Stream, bytearray] = {}
    sinks: Sinks = {}
    if options.get("stdout") is None:
        options["stdout"] = PIPE
        sinks[Stream.STDOUT] = _passed_on_to(sys.stdout)
    elif options["stdout"] == PIPE:
        captured[Stream.STDOUT] = bytearray()
    if options.get("stderr") is None:
        options["stderr"] = PIPE
        sinks[Stream.STDERR] = _passed_on_to(sys.stderr)
    elif options["stderr"] == PIPE:
        captured[Stream.STDERR] = bytearray()
    sinks.update((stream, data.extend) for stream, data in captured.items())
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
    handle: Handle, options: Options, stdout: bytes | str | None, stderr: bytes | str | None
) -> Completed[bytes | str | None]:
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
    )
