"""A host on which processes can be run: this one, or that of a server."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from subprocess import PIPE
from types import TracebackType
from typing import TYPE_CHECKING, Literal, overload

from holdfast.errors import OutOfTurn
from holdfast.model import EnvPolicy, HostInfo, Limits, Listing, Size, Stream

from .handle import Handle
from .options import Options, Text, arguments, routes_of, spec_of

if TYPE_CHECKING:
    from typing import Unpack

    from holdfast.files import Files
    from holdfast.sandbox import Sandbox

    from .completed import Completed
    from .place import Place

_ANY = {Stream.STDOUT: Stream.STDOUT, Stream.STDERR: Stream.STDERR, Stream.PTY: Stream.STDOUT}
"""Where to read a process of which nobody knows whether it has a terminal."""


def connect(
    url: str,
    *,
    token: str | None = None,
    name: str = "holdfast",
    heartbeat: float = 20.0,
    give_up: float = 60.0,
    told: Callable[[bool], None] | None = None,
) -> Host:
    """The host of the server at ``url``, to be opened with ``async with`` or ``open``.

    A connection that breaks is made again, and nothing is lost meanwhile.

    Args:
        token: What the server knows its clients by.
        name: What to call ourselves there.
        heartbeat: Seconds between two signs of life.
        give_up: Seconds without a connection after which it is lost for good.
        told: Called with False when the connection is lost, perhaps more than once, and with
            True when there is one again.
    """

    async def remote() -> Place:
        from holdfast.client.remote import RemoteBackend  # Here: who stays on this host does not need it.

        backend = RemoteBackend(
            url, token=token, client_name=name, heartbeat=heartbeat, give_up=give_up, told=told
        )
        try:
            await backend.open()
        except BaseException:
            await backend.aclose()
            raise
        return backend

    return Host(remote, cwd=lambda place: place.info.cwd)


def local(*, processes: int | None = None, retained_bytes: int | None = None) -> Host:
    """This host, without any server; to be opened with ``async with`` or ``open``.

    Its processes end with it, also those that are kept.

    Args:
        processes: How many may run at once.
        retained_bytes: How much of their output is kept for ``attach``, of all together.
    """

    async def embedded() -> Place:
        from .embedded import Embedded  # Here: who is connected to a server does not need it.

        return Embedded(processes=processes, retained_bytes=retained_bytes)

    return Host(embedded, cwd=lambda _: os.getcwd())


class Host:
    """Where processes run.  Made by ``connect`` and ``local``."""

    def __init__(self, reach: Callable[[], Awaitable[Place]], *, cwd: Callable[[Place], str]) -> None:
        """
        Args:
            reach: Gives the place, each time the host is opened.
            cwd: The directory in which processes start without one of their own.
        """
        self._reach = reach
        self._cwd = cwd
        self._place: Place | None = None

    # From open to close.

    async def open(self) -> Host:
        """Get ready to run processes; return this host.  Needs to be closed then.

        Raises:
            LinkLost: There is no such server, or it does not want us.
        """
        if self._place is None:
            self._place = await self._reach()
        return self

    async def aclose(self) -> None:
        """End every process that was started here and is not kept by a server.  May be called twice."""
        place, self._place = self._place, None
        if place is not None:
            await place.aclose()

    async def __aenter__(self) -> Host:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def place(self) -> Place:
        """What processes run on.

        Raises:
            OutOfTurn: The host is not open.
        """
        if self._place is None:
            raise OutOfTurn("the host is not open: use it in 'async with', or await open()")
        return self._place

    # What it is like.

    @property
    def info(self) -> HostInfo:
        """Its shell, its directories, what sandboxes are worth there."""
        return self.place.info

    @property
    def files(self) -> Files:
        """Its files."""
        return self.place.files

    # Processes.

    async def start(
        self,
        argv: Sequence[Text],
        *,
        name: str | None = None,
        keep: bool = False,
        cwd: Text | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int | None = None,
        stdout: int | None = PIPE,
        stderr: int | None = PIPE,
        terminal: Size | bool | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  (the host's, not ours)
        idle_timeout: float | None = None,
        grace: float = 0.0,
        output_limit: int | None = None,
        drain: float | None = None,
        retain: int | None = None,
        limits: Limits | None = None,
        env_policy: EnvPolicy | None = None,
        sandbox: Sandbox | None = None,
        arg0: str | None = None,
    ) -> Handle:
        """Start a program, without a shell.  Cancelling leaves no process behind.

        Args:
            name: What to call it; without one, it is given one.
            keep: Let it outlive this client.  ``attach`` finds it by its name, here or in another program.
            cwd: Where it runs; without one, where the host does.
            env: All its variables; without them, those of the host.
            stdin: ``PIPE``, or nothing to read.
            stdout: ``PIPE`` or ``DEVNULL``.
            stderr: The same, or ``STDOUT``: read both there, in the order in which they came.
            terminal: Give it a terminal, of this size, instead of pipes.  All it says is in ``stdout``.
            timeout: Seconds after which it is ended, with everything it has started.
            idle_timeout: Seconds without output or input after which it is.
            grace: Seconds between the request to end, SIGTERM, and the end.
            output_limit: Bytes of output after which it is ended.
            drain: Seconds after its exit until its output ends, whoever holds it open.
            retain: Bytes of output to keep for ``attach``.
            limits: What it and everything it starts may use together.
            env_policy: Which variables of the host it gets; ``env`` is laid over them.
            sandbox: What it may do.
            arg0: What it sees as its own name.

        Raises:
            SpawnFailed: It could not be started; the error names what is at fault.
            NameTaken: There is a process of this name.
            LimitReached: There are as many processes as may be.
        """
        options = Options(
            name=name,
            keep=keep,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            terminal=terminal,
            timeout=timeout,
            idle_timeout=idle_timeout,
            grace=grace,
            output_limit=output_limit,
            drain=drain,
            retain=retain,
            limits=limits,
            env_policy=env_policy,
            sandbox=sandbox,
            arg0=arg0,
        )
        place, command, routes = self.place, arguments(argv), routes_of(options)
        spec = spec_of(command, options, cwd=self._cwd(place))
        process = await place.start(spec, name=name, keep=keep, retain=retain)
        # No wait between the start and the watch in here, or something could be missed.
        writable = spec.stdin or spec.terminal is not None
        return Handle(process, command, routes, stdin=writable, piped=spec.stdin, ours=not keep)

    async def create_subprocess_exec(self, program: Text, *args: Text, **options: Unpack[Options]) -> Handle:
        """``start``, spelled as in ``asyncio``."""
        return await self.start([program, *args], **options)

    async def create_subprocess_shell(self, cmd: str, **options: Unpack[Options]) -> Handle:
        """Start a command line in the shell of the host's user."""
        return await self.start([self.info.shell, "-c", cmd], **options)

    async def attach(self, name: str, *, after: int = 0) -> Handle:
        """A process by its name, whoever has started it.

        Reading begins behind the number ``after``, as far back as output is kept; up to
        the first read nothing is read, so that to wait for it holds up nobody.

        Raises:
            UnknownProcess: There is none of this name.
        """
        process = await self.place.find(name)
        return Handle(process, [], _ANY, stdin=True, ours=False, after=after)

    async def processes(self) -> Sequence[Listing]:
        """The processes that can be found, the oldest first."""
        return await self.place.list()

    # Commands.

    @overload
    async def run(
        self,
        argv: Sequence[Text],
        *,
        input: bytes | str | None = None,
        capture_output: Literal[True],
        check: bool = False,
        text: Literal[True],
        encoding: str | None = None,
        errors: str | None = None,
        **options: Unpack[Options],
    ) -> Completed[str]: ...
    @overload
    async def run(
        self,
        argv: Sequence[Text],
        *,
        input: bytes | str | None = None,
        capture_output: Literal[True],
        check: bool = False,
        text: bool | None = None,
        encoding: str,
        errors: str | None = None,
        **options: Unpack[Options],
    ) -> Completed[str]: ...
    @overload
    async def run(
        self,
        argv: Sequence[Text],
        *,
        input: bytes | str | None = None,
        capture_output: Literal[True],
        check: bool = False,
        text: Literal[False] | None = None,
        encoding: None = None,
        errors: str | None = None,
        **options: Unpack[Options],
    ) -> Completed[bytes]: ...
    @overload
    async def run(
        self,
        argv: Sequence[Text],
        *,
        input: bytes | str | None = None,
        capture_output: bool = False,
        check: bool = False,
        text: bool | None = None,
        encoding: str | None = None,
        errors: str | None = None,
        **options: Unpack[Options],
    ) -> Completed[bytes | str | None]: ...
    async def run(
        self,
        argv: Sequence[Text],
        *,
        input: bytes | str | None = None,  # noqa: A002  (as in subprocess)
        capture_output: bool = False,
        check: bool = False,
        text: bool | None = None,
        encoding: str | None = None,
        errors: str | None = None,
        **options: Unpack[Options],
    ) -> Completed[bytes | str | None]:
        """Run a command to its end.

        Takes what ``subprocess.run`` takes, and what ``start`` does.  Output that is not
        captured is passed on to our own.  If others hold it open when the command has ended,
        they are given ``drain`` seconds, 2 unless told otherwise.  Cancelling ends the command
        first, with everything it has started.

        Raises:
            TimedOut: It took longer than ``timeout``, or said nothing for ``idle_timeout``.
            CommandFailed: It failed, and ``check`` is set.
            SpawnFailed: It could not be started.
        """
        from .running import Coding, run  # Here: who starts processes need not know how to run commands.

        coding = Coding(text=text, encoding=encoding, errors=errors)
        completed = await run(self, argv, options, given=input, capture=capture_output, coding=coding)
        if check:
            completed.check_returncode()
        return completed
