"""Hosts that processes run on: this one, or that of a server."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from subprocess import PIPE
from types import TracebackType
from typing import TYPE_CHECKING

from holdfast import renamed
from holdfast.allowance import Allowance
from holdfast.config import MIB
from holdfast.errors import OutOfTurn
from holdfast.model import EnvironmentPolicy, HostInfo, Limits, Listing, Size, Stream

from . import commands
from .handle import Handle
from .opening import opening_of
from .options import Options, Text, arguments, naming_of, routes_of, spec_of

if TYPE_CHECKING:
    from typing import Unpack

    from holdfast.model import CurrentUsage
    from holdfast.place import Place
    from holdfast.recordings import HostRecording
    from holdfast.sandbox import Sandbox

    from .events import ProcessEvents
    from .files import HostFiles
    from .http import HttpClient

UNREAD = 256 * MIB
"""Bytes of unread output that a client holds by default: enough for about fifty busy processes."""

_ANY = {Stream.STDOUT: Stream.STDOUT, Stream.STDERR: Stream.STDERR, Stream.PTY: Stream.STDOUT}
"""The routes of a process that was found, which may have a terminal or not."""


def connect(
    url: str,
    *,
    token: str | None = None,
    name: str = "holdfast",
    heartbeat: float = 20.0,
    reconnect_timeout: float = 60.0,
    unread_bytes: int = UNREAD,
    on_connection_change: Callable[[bool], None] | None = None,
    give_up: float | None = None,
    told: Callable[[bool], None] | None = None,
) -> Host:
    """Return the host of the server at ``url``; open it with ``async with`` or ``open``.

    A connection that breaks is restored, and no output or input is lost meanwhile.

    Args:
        url: ``ws://HOST:PORT``, ``wss://HOST:PORT``, ``unix://PATH`` or ``stdio:COMMAND``.
        token: The bearer token that the server asks for.
        name: How the server is to call this client, for example in its log.
        heartbeat: Seconds between two messages that check whether the connection works.
        reconnect_timeout: Seconds without a connection after which it is lost for good.
        unread_bytes: How much unread output of all processes together is held here.  Beyond that, a
            process waits once 64 KiB of its output are unread, as with a pipe.  Nothing is lost.
        on_connection_change: Called with False when the connection is lost, perhaps more than
            once, and with True when it is restored.
        give_up: The old name of ``reconnect_timeout``.
        told: The old name of ``on_connection_change``.
    """
    if give_up is not None:
        reconnect_timeout = give_up
        renamed("give_up", "reconnect_timeout")
    if told is not None:
        on_connection_change = told
        renamed("told", "on_connection_change")

    async def remote() -> Place:
        from holdfast.client.remote import RemoteBackend  # Here: ``local`` does not need it.

        backend = RemoteBackend(
            url,
            token=token,
            client_name=name,
            heartbeat=heartbeat,
            reconnect_timeout=reconnect_timeout,
            ahead=Allowance(unread_bytes // 2),
            on_connection_change=on_connection_change,
        )
        try:
            await backend.open()
        except BaseException:
            await backend.aclose()
            raise
        return backend

    # One half for output that was received, one for output that is on its way.
    return Host(remote, cwd=lambda place: place.info.cwd, unread=Allowance(unread_bytes // 2))


def local(*, processes: int | None = None, retained_bytes: int | None = None) -> Host:
    """Return this host, without any server; open it with ``async with`` or ``open``.

    When it is closed all its processes end, also those that are kept.

    Args:
        processes: How many processes may run at once.
        retained_bytes: How much output of all processes together is kept for ``attach``.
    """

    async def embedded() -> Place:
        from .embedded import Embedded  # Here: ``connect`` does not need it.

        return Embedded(processes=processes, retained_bytes=retained_bytes)

    return Host(embedded, cwd=lambda _: os.getcwd())


class Host:
    """A host that processes run on.  Made by ``connect`` and ``local``."""

    def __init__(
        self,
        open_place: Callable[[], Awaitable[Place]],
        *,
        cwd: Callable[[Place], str],
        unread: Allowance | None = None,
    ) -> None:
        """
        Args:
            open_place: Returns the place to run processes on, each time the host is opened.
            cwd: Returns the directory in which processes start by default.
            unread: How much unread output of all processes together is held.
        """
        self._open_place = open_place
        self._cwd = cwd
        self._unread = unread or Allowance(UNREAD // 2)
        self._place: Place | None = None

    # Opening and closing.

    async def open(self) -> Host:
        """Connect to the server, or set up the engine; return this host.  Call ``aclose`` afterwards.

        Raises:
            LinkLost: There is no such server, or it refuses this client.
        """
        if self._place is None:
            self._place = await self._open_place()
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
        """What the processes run on.

        Raises:
            OutOfTurn: The host is not open.
        """
        if self._place is None:
            raise OutOfTurn("the host is not open: use it in 'async with', or await open()")
        return self._place

    # Facts.

    @property
    def info(self) -> HostInfo:
        """Facts about the host: its shell, its directories, how well it enforces sandboxes."""
        return self.place.info

    @property
    def files(self) -> HostFiles:
        """The files of the host."""
        from .files import HostFiles  # Here: most programs only run something.

        return HostFiles(self.place.files, self._cwd(self.place))

    @property
    def http(self) -> HttpClient:
        """HTTP requests from the host."""
        from .http import HttpClient  # Here: most programs make none.

        return HttpClient(self.place.http)

    # Processes.

    async def start(
        self,
        argv: Sequence[Text],
        *,
        name: str | None = None,
        keep: bool = False,
        cwd: Text | None = None,
        env: Mapping[str, str] | None = None,
        extra_env: Mapping[str, str | None] | None = None,
        stdin: int | None = None,
        stdout: int | None = PIPE,
        stderr: int | None = PIPE,
        terminal: Size | bool | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  (the host's, not ours)
        idle_timeout: float | None = None,
        grace: float = 0.0,
        output_limit: int | None = None,
        truncate_output: bool = False,
        drain: float | None = None,
        retain: int | None = None,
        limits: Limits | None = None,
        env_policy: EnvironmentPolicy | None = None,
        sandbox: Sandbox | None = None,
        arg0: str | None = None,
        idempotent: bool = False,
        auto_remove: bool = False,
        notify: str | None = None,
        shell: bool = False,
        record: str | HostRecording | None = None,
        user: str | int | None = None,
    ) -> Handle:
        """Start a program, without a shell.  Cancelling leaves no process behind.

        Args:
            argv: The program and its arguments.  The program is looked up in ``PATH``.  With ``shell``, one
                text.
            name: What to call the process; by default a name is chosen.  Its end frees the name.
            keep: Let the process outlive this client.  ``attach`` finds it by its name, also in
                another program.
            cwd: The working directory; by default that of the host.
            env: All environment variables; by default those of the host.
            extra_env: Variables that are set over those of the host; None takes one away.
            stdin: ``PIPE``, or None or ``DEVNULL`` for an empty input.
            stdout: ``PIPE``, or ``DEVNULL`` to drop it.
            stderr: ``PIPE``, ``DEVNULL``, or ``STDOUT`` to read both outputs there, in their order.
            terminal: Give it a terminal of this size instead of pipes.  All output is in ``stdout``.
            timeout: Seconds after which it is ended, with everything it has started.
            idle_timeout: Seconds without output and input after which it is ended.
            grace: Seconds between SIGTERM and SIGKILL, whenever it is ended.
            output_limit: Bytes of output after which it is ended.
            truncate_output: Let it run on at the limit, and read, drop and count its further output.
            drain: Seconds after its exit at which its output ends, even if others hold it open.
            retain: Bytes of output to keep for ``attach``.
            limits: What it may use, together with everything it starts.
            env_policy: Which variables of the host it inherits; ``env`` is set over them.
            sandbox: What it may access, such as ``Sandbox.workspace()``; by default everything that the
                user of the host may.
            arg0: What it sees as its own name, instead of ``argv[0]``.
            idempotent: Return what the same request has started before.  Needs ``name`` and ``keep``.
            auto_remove: List it no more once it has ended, and forget it soon.  Needs ``keep``.
            notify: Have the server send its end to this URL, which its operator must have allowed.
            shell: Have the shell of the host, ``info.shell``, read ``argv``.
            record: Have the host record its terminal to this new file there, as asciicast.
            user: Start it as this user of the host: a name, a number or ``"UID:GID"``.  Needs a server that
                is root, and a token that lists the user.

        Raises:
            SpawnFailed: It could not be started; the error says what is at fault.
            UserRefused: Nothing can be started there as ``user``.
            NameTaken: A process with this name runs.
            BadRequest: The server may not notify that URL.
            LimitReached: The host runs as many processes as it may.
        """
        options = Options(
            name=name,
            keep=keep,
            cwd=cwd,
            env=env,
            extra_env=extra_env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            terminal=terminal,
            timeout=timeout,
            idle_timeout=idle_timeout,
            grace=grace,
            output_limit=output_limit,
            truncate_output=truncate_output,
            drain=drain,
            retain=retain,
            limits=limits,
            env_policy=env_policy,
            sandbox=sandbox,
            arg0=arg0,
            idempotent=idempotent,
            auto_remove=auto_remove,
            notify=notify,
            shell=shell,
            record=record,
            user=user,
        )
        return await self._start(argv, options)

    async def _start(self, argv: Sequence[Text], options: Options) -> Handle:
        place, routes, keep = self.place, routes_of(options), options["keep"]
        command = arguments(argv, shell=self.info.shell if options["shell"] else None)
        spec = spec_of(command, options, cwd=self._cwd(place))
        process = await place.start(spec, naming_of(options))
        # No await between the start and the watch in ``Handle``, or events could be missed.
        writable, piped = spec.stdin or spec.terminal is not None, spec.stdin
        return Handle(
            process,
            command,
            routes,
            stdin=writable,
            piped=piped,
            ours=not keep,
            unread=self._unread,
            most=options["output_limit"] if options["truncate_output"] else None,
        )

    async def create_subprocess_exec(self, program: Text, *args: Text, **options: Unpack[Options]) -> Handle:
        """Start a program; ``start`` with the signature of the function in ``asyncio``."""
        return await self.start([program, *args], **options)

    async def create_subprocess_shell(self, cmd: str, **options: Unpack[Options]) -> Handle:
        """Start a command line in the shell of the host; ``start`` with ``shell=True``."""
        return await self.start(cmd, **(options | {"shell": True}))

    async def attach(self, name: str, *, after: int = 0, snapshot: bool = False) -> Handle:
        """Return a process by its name, whoever has started it.

        Nothing is requested before the first read, so a handle that only waits does not slow the
        process down.

        Args:
            name: Its name or its identifier, which may be shortened to what is unique.  Of several with
                this name it is the one that runs, or else the last one.
            after: The number of output behind which reading begins, as far as output is kept.
            snapshot: Begin with what its terminal shows, instead of all that it said: the first bytes
                draw it.  A host that does not know (``Handle.shown`` is None) begins with what is kept,
                without the questions that a terminal would answer once more.

        Raises:
            UnknownProcess: There is no process with this name.
            NameAmbiguous: The identifiers of several processes begin like this.
        """
        process = await self.place.find(name)
        opening = await opening_of(process) if snapshot else None
        return Handle(
            process, [], _ANY, stdin=True, ours=False, after=after, unread=self._unread, opening=opening
        )

    async def restart(self, name: str, *, grace: float = 5.0) -> Handle:
        """End a kept process with everything it has started, and start the same under its name.

        Args:
            name: Its name or identifier, as for ``attach``; it may have ended.
            grace: Seconds between SIGTERM and SIGKILL, if it runs.

        Raises:
            UnknownProcess: There is no process with this name.
            StillRunning: Something of it could not be ended; nothing was started.
        """
        process = await self.place.restart(name, grace=grace)
        return Handle(process, [], _ANY, stdin=True, ours=False, after=0, unread=self._unread)

    async def processes(self, *, inspect: bool = False) -> Sequence[Listing]:
        """Return the processes that ``attach`` finds, the oldest first.

        With ``inspect``, each says whether it waits for input.
        """
        return await self.place.list(inspect=inspect)

    async def remove(self, name: str) -> None:
        """Forget a process that has ended, and its output; its name may be shortened as for ``attach``.

        Raises:
            UnknownProcess: There is no process with this name.
            StillRunning: It has not ended.
        """
        await (await self.place.find(name)).remove()

    async def usage(self, *names: str) -> Sequence[CurrentUsage]:
        """Return what processes use now, each together with everything it has started.

        Two of these, some seconds apart, give the share of a processor and the bytes of output per second.
        A process of which nobody is left has none.

        Args:
            names: Of these only: names or whole identifiers.  Without any, of all that ``processes`` returns.

        Raises:
            Unsupported: The server is older than this request.
        """
        return await self.place.usage(names or None)

    def events(self) -> ProcessEvents:
        """Return what happens to all processes of the host, for ``async with`` and ``async for``.

        Of a server these are the processes of whoever its token names, those of other clients
        included.  After a lost connection the iteration goes on, with a gap in it.
        """
        from .events import ProcessEvents  # Here: most programs follow only what they start.

        return ProcessEvents(lambda: self.place)

    # Commands.

    run = commands.run
    map = commands.map_commands
