"""``holdfast run`` and ``holdfast exec``: start a program, and follow it to its end."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
from subprocess import DEVNULL, PIPE
from typing import Any

from holdfast.aliases import complaint
from holdfast.api.handle import Handle
from holdfast.api.host import Host
from holdfast.errors import FileFailed, HoldfastError, NameTaken, Refused
from holdfast.model import Limits, Size
from holdfast.recordings import HostRecording

from .connection import come_back
from .follow import Manner, follow
from .line_keys import is_in_foreground
from .options import wants_json
from .record import CastWriter
from .report import Failure, tell_names
from .sandbox_options import sandbox_of
from .show import tell_json
from .streams import is_given
from .target import perform, url_of
from .terminal import DEFAULT_DETACH_KEYS, detach_keys, is_terminal, screen_size, viewed
from .variables import variables

_GRACE = 5.0
"""Seconds that the program has to end when this command is asked to, unless ``--grace`` says otherwise."""


def run(arguments: argparse.Namespace) -> int:
    """Run a program and return its exit code.  On a server it is kept, and outlives this command.

    Raises:
        Failure: It could not be started, or not be followed to its end.
    """
    return _run(arguments, is_shared=url_of(arguments) is not None)


def execute(arguments: argparse.Namespace) -> int:
    """Run a program that ends with this command, also on a server; return its exit code.

    Raises:
        Failure: It could not be started, or not be followed to its end.
    """
    return _run(arguments, is_shared=False)


def _run(arguments: argparse.Namespace, *, is_shared: bool) -> int:
    _check(arguments)
    recorder = None
    if arguments.record is not None:
        recorder = CastWriter(arguments.record, with_input=arguments.record_input)

    async def work(host: Host) -> int:
        await _check_writable(host, arguments)
        handle = await _start(host, arguments, is_shared=is_shared)
        if recorder is not None:
            recorder.begin(_size(), command=arguments.argv, env=os.environ)
        # What was imported and made so far lives to the end, so the collector need not look at it again.
        gc.freeze()
        gc.enable()
        if arguments.detach:
            return _tell(handle, arguments)
        code = await follow(handle, _manner(arguments, handle.name, recorder, is_shared=is_shared))
        if recorder is not None:
            recorder.end(code)
        if is_shared and handle.returncode is not None and not arguments.idempotent:
            # We have said all there is to say of it.  Whoever has left a process that runs comes back.
            with contextlib.suppress(HoldfastError):
                await host.remove(handle.identifier)
        return code

    try:
        return perform(arguments, work, embedded=True)
    finally:
        if recorder is not None:
            recorder.close()


async def _start(host: Host, arguments: argparse.Namespace, *, is_shared: bool) -> Handle:
    """Start the program, with ``--replace`` in the place of the one that has its name."""
    terms = _terms(arguments)
    try:
        return await host.start(arguments.argv, keep=is_shared, **terms)
    except NameTaken as taken:
        if not arguments.replace:
            raise
        process = await host.place.find(taken.name)
        ended = await process.end(grace=terms["grace"] or _GRACE)
        if ended.survivors:
            pids = ", ".join(map(str, ended.survivors))
            raise Failure(
                f"{taken.name} is not replaced: these processes could not be ended: {pids}"
            ) from None
        return await host.start(arguments.argv, keep=is_shared, **terms)


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what cannot work before anything is started.

    Raises:
        Failure: It cannot.
    """
    if not arguments.argv or not arguments.argv[0]:
        raise Failure("no program given: write it last, for example 'holdfast run -- ls -l'")
    if arguments.name is not None and (wrong := complaint(arguments.name)) is not None:
        raise Failure(f"--name: {wrong}; {arguments.name!r} is not possible")
    for option in ("replace", "idempotent"):
        if getattr(arguments, option) and arguments.name is None:
            raise Failure(f"--{option} needs the name of the process: add --name NAME")
    sandbox_of(arguments)
    if arguments.truncate and arguments.output_limit is None:
        raise Failure("--truncate needs --output-limit: the bytes of output to keep, such as 10m")
    if arguments.record is not None and (not arguments.tty or arguments.detach):
        raise Failure(
            "--record records a terminal that is followed: add -t, and leave out -d; or use --record-on-host"
        )
    if arguments.record_on_host is not None and not arguments.tty:
        raise Failure("--record-on-host records a terminal: add -t")
    if arguments.record is None and arguments.record_on_host is None and arguments.record_input:
        raise Failure("--record-input needs --record FILE or --record-on-host PATH")
    if url_of(arguments) is None:
        _check_directory()
    if arguments.detach and url_of(arguments) is None:
        raise Failure(
            "-d needs a server that keeps the process: use --url ws://HOST:PORT or set HOLDFAST_URL;"
            " start one with 'holdfast serve'"
        )


async def _check_writable(host: Host, arguments: argparse.Namespace) -> None:
    """Refuse a directory of ``--writable`` that is not there: a sandbox would pass over it in silence.

    Raises:
        Failure: It is not there.
    """
    for path in arguments.writable:
        try:
            await host.files.metadata(_absolute(path, arguments.workdir or "", host.info.cwd))
        except FileFailed as error:
            reason = os.strerror(error.number)
            raise Failure(f"--writable {path}: {reason}; it has to exist before the start") from None
        except Refused:
            pass  # The token allows no look at files; a start may be allowed all the same.


def _absolute(path: str, workdir: str, cwd: str) -> str:
    return os.path.normpath(os.path.join(cwd, workdir, path))


def _check_directory() -> None:
    """Refuse a current directory that is gone: the program would start in it."""
    try:
        os.getcwd()
    except OSError as error:
        raise Failure(f"the current directory cannot be used: {error.strerror}; change to another") from None


def _size() -> Size:
    """Return the size for the program's terminal."""
    return Size(*viewed(*(screen_size() or (24, 80))))


def _terms(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the keyword arguments for ``Host.start``."""
    size = _size() if arguments.tty else None
    terms: dict[str, Any] = {
        "name": arguments.name,
        "cwd": arguments.workdir,
        "stdin": PIPE if _passes_input(arguments) else DEVNULL,
        "terminal": size,
        "timeout": arguments.timeout,
        "idle_timeout": arguments.idle_timeout,
        "grace": arguments.grace or 0.0,
        "output_limit": arguments.output_limit,
        "truncate_output": arguments.truncate,
        "retain": arguments.retain,
        "idempotent": arguments.idempotent,
        "auto_remove": arguments.rm,
        "notify": arguments.notify,
        "user": arguments.user,
    }
    if arguments.record_on_host is not None:
        terms["record"] = HostRecording(arguments.record_on_host, arguments.record_input)
    if overlay := _overlay(arguments):
        terms["extra_env"] = overlay
    if arguments.memory or arguments.cpu or arguments.pids:
        terms["limits"] = Limits(memory=arguments.memory, cpu=arguments.cpu, processes=arguments.pids)
    if (sandbox := sandbox_of(arguments)) is not None:
        terms["sandbox"] = sandbox
    return terms


def _passes_input(arguments: argparse.Namespace) -> bool:
    """Whether the process gets a standard input that can be written to."""
    if arguments.interactive or arguments.tty:
        return True
    return not arguments.detach and is_given(0)


def _manner(
    arguments: argparse.Namespace, name: str, recorder: CastWriter | None, *, is_shared: bool
) -> Manner:
    at_terminal = is_terminal(0)
    keys = detach_keys(DEFAULT_DETACH_KEYS) if arguments.detach_keys is None else arguments.detach_keys
    raw = arguments.tty and at_terminal
    is_typed = arguments.interactive and not raw and at_terminal
    return Manner(
        stdin=is_given(0) or arguments.interactive or raw,
        lines=is_typed and is_shared and bool(keys) and is_in_foreground(0),
        back=come_back(arguments, name, "attach"),
        connection=arguments.connection,
        raw=raw,
        keys=keys,
        detachable=is_shared,
        grace=_GRACE if arguments.grace is None else arguments.grace,
        json=wants_json(arguments),
        quiet=arguments.quiet,
        record=recorder,
    )


def _tell(handle: Handle, arguments: argparse.Namespace) -> int:
    """Print the name of a process that was started and is not followed."""
    if wants_json(arguments):
        tell_json({"name": handle.name, "id": handle.identifier, "pid": handle.pid})
    else:
        tell_names([handle.name])
    return 0


def _overlay(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the variables that are set over those of the host."""
    overlay: dict[str, str] = {}
    if arguments.tty and url_of(arguments) is not None and "TERM" in os.environ:
        overlay["TERM"] = os.environ["TERM"]  # What the program draws is shown on our terminal.
    return overlay | variables(os.environ, files=arguments.env_file, given=arguments.env)
