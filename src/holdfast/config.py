"""Settings and limits: each with its default and its reason (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import old_names
from .value import value

KIB = 1 << 10
MIB = 1 << 20


@value
class EngineLimits:
    """What the engine may use."""

    processes: int = 16_384
    """Processes at once; a host's own limit on processes is usually lower still."""

    retained_bytes: int = 1024 * MIB
    """Output kept for all processes together, with 128 bytes for each piece of it.

    Over it, whoever adds drops its own oldest.
    """

    arena_bytes: int = 2048 * MIB
    """Memory for what outlives the server: retained output, input that was not read yet, records.

    Twice what is retained, because it is taken in blocks.
    """

    retained_chunks: int = 50_000
    """Pieces of output kept per process: bounds the overhead of one-byte writes."""

    arguments: int = 131_072
    """Arguments that one request gives to its process: the kernel takes few more, however short."""

    argument_bytes: int = 6 * MIB
    """Bytes of all arguments of one process: the kernel takes no more, whatever its settings."""

    stdin_chunks: int = 128
    """Writes queued for a child that does not read; further writes wait for their answer."""

    stdin_bytes: int = 8 * MIB
    """Bytes queued for a child that does not read, because a single write may be large."""

    stop_seconds: float = 5.0
    """How long a stop waits for killed processes; one stuck in the kernel is left behind."""

    user_seconds: float = 5.0
    """How long the host's user database may take; behind it may be a network that hangs."""

    write_ids: int = 4096
    """Accepted write identifiers remembered per process, so that a retry is not written twice."""

    write_id_bytes: int = 4 * MIB
    """Bytes of remembered identifiers, because a single one may be long.  The newest is always remembered."""


@value
class EnvironmentLimits:
    """What a request may say of a process's variables: all its names are compared with all its patterns."""

    variables: int = 4096
    """Variables that one request gives to its process, in `env` and in `set` of `envPolicy` together."""

    name_bytes: int = 64 * KIB
    """Bytes of the names of these variables, because a single one may be long."""

    patterns: int = 256
    """Patterns of one `envPolicy`, in `exclude` and `includeOnly` together."""

    pattern_bytes: int = 4 * KIB
    """Bytes of the patterns of one request, because a single one may be long."""


@value
class SandboxLimits:
    """What the policy of a sandbox may ask for, and how long may be looked for what it means on the disk."""

    entries: int = 1024
    """Entries of one policy; one that stands for several roots counts as one for each of them."""

    roots: int = 256
    """Roots of the workspace, and temporary directories, that come with it."""

    path_bytes: int = 4 * KIB
    """One path or pattern: the kernel takes no longer ones."""

    text_bytes: int = 256 * KIB
    """All paths and patterns of a policy and its roots, as they are sent: they are read on the loop."""

    patterns: int = 64
    """Patterns among the entries: each is looked for on the disk."""

    matches: int = 8192
    """Paths that they match together: what the protocol promises its clients."""

    names: int = 1_048_576
    """Names that are looked at for them together: a large home, and about five seconds."""

    lookup_seconds: float = 10.0
    """How long may be looked for them: a thread is in use meanwhile."""

    lookup_threads: int = 2
    """Searches at once, of all clients: more would take the processor from the event loop."""

    trial_seconds: float = 5.0
    """How long bubblewrap may take when it is tried out: it hangs where a mount of the host does."""


@value
class SessionLimits:
    """How long, and how much, the exec dialect holds for its clients."""

    sessions: int = 4096
    """Sessions at once, attached or not."""

    principals: int = 4096
    """Principals that have a connection, a session or a kept process."""

    names: int = 65_536
    """Processes of one session, those still retained after their end included."""

    name_bytes: int = 64 * MIB
    """Bytes of the names of these processes, because a single one may be as long as a message."""

    detached_seconds: float = 30.0
    """How long a session waits for its client to come back."""

    closed_seconds: float = 30.0
    """How long a closed process can still be read."""

    attached_bytes: int = MIB
    """Output kept per process while its client is there and is told everything."""

    detached_bytes: int = 64 * MIB
    """Output kept per process while its client is away, so that it finds everything on return."""

    window_bytes: int = 64 * MIB
    """Output that a client may leave unacknowledged, per process: more is legal and means the same."""

    kept_names: int = 16_384
    """Processes that belong to no client, the ended ones included: as many as may run."""

    kept_ended: int = 1024
    """Kept processes of one principal that have ended; beyond it the oldest are forgotten."""

    kept_seconds: float = 3600.0
    """How long such a process can still be read after its close: whoever asks next may come late."""

    answer_bytes: int = 40 * MIB
    """Output in one answer to a read: encoded it stays below the 64 MiB a peer takes as a message."""

    shell_snapshots: int = 16
    """Shell snapshots of one session; beyond it the one that was used longest ago is made again."""

    shell_snapshot_bytes: int = 32 * MIB
    """Bytes of all shell snapshots; what is beyond it is not remembered."""

    loopback_ports: int = 1024
    """Ports of a managed network that one start may name: they are checked, and not used."""

    waiting_ends: int = 1024
    """Requests of one connection that wait while processes are given time to end."""

    probe_seconds: float = 1.0
    """How long the holder of a contested session has to prove that it is alive."""


@value
class AppLimits:
    """How long, and how much, the app dialects hold for their clients."""

    names: int = 16_384
    """Processes, and commands, of one connection at once."""

    name_bytes: int = 64 * MIB
    """Bytes of the names of these processes, because a single one may be as long as a message."""

    opt_outs: int = 1024
    """Notifications that a client may opt out of, known to us or not: there are fewer of all products."""

    opt_out_bytes: int = 64 * KIB
    """Their names together."""

    buffered_bytes: int = 48 * MIB
    """Output of one stream kept for a result: as text it stays below the 64 MiB a peer takes as a message.

    A client that set no cap, or a larger one, is told when this cut its output.
    """

    buffered_total: int = 1024 * MIB
    """Output kept for results, of all streams together.  Over it, output is cut, and said to be."""

    drain_seconds: float = 2.0
    """From an exit to the result, however long somebody holds the output open."""

    process_quiet_seconds: float | None = None
    """Silence after the exit that ends a process's output; without it, only the end of the output does."""

    command_quiet_seconds: float | None = 0.05
    """Silence after the exit of a command that ends the wait for its output."""

    command_policy: str = "read-only"
    """What a command may do that comes without a policy: what the protocol says."""


@value
class HttpLimits:
    """What the HTTP requests of clients may use."""

    requests: int = 1024
    """Requests at once, of all clients: each is a socket and a task, for as long as its response streams."""

    connection_requests: int = 256
    """HTTP requests of one connection at once, so that one client leaves room for the others."""

    buffered_bytes: int = 47 * MIB
    """The body of a response that is not streamed: encoded it stays below the 64 MiB a peer takes."""

    buffered_total: int = 512 * MIB
    """Bodies of responses that are not streamed, of all clients together.  Over it, a request fails."""

    delta_bytes: int = MIB
    """Bytes of a streamed body in one notification: what the protocol promises its clients."""

    headers: int = 1024
    """Headers of one request: each is checked, however short it is, and no server takes so many."""

    header_bytes: int = 96 * KIB
    """Headers of one request, or one response: the library takes no head above 100 KiB, whatever we say."""

    url_bytes: int = 64 * KIB
    """The URL of one request: the library takes no longer ones."""

    redirects: int = 10
    """Redirects in a row, as most clients follow."""


@value
class FileLimits:
    """What may be asked of files."""

    read_bytes: int = 512 * MIB
    """One file read as a whole: what the protocol promises its clients."""

    at_once_bytes: int = 3 * MIB
    """A file up to this size is read at once; a larger one is sent piece by piece, of this size each."""

    block_bytes: int = MIB
    """One block of an open file, read or written."""

    handles: int = 128
    """Open files of one connection."""

    handle_bytes: int = 32
    """The name that a client gives to an open file."""

    entries: int = 50_000
    """Names in the answer about one directory."""

    walk_depth: int = 64
    """Levels that a walk may be asked to go down."""

    walk_directories: int = 10_000
    """Directories that it may be asked to enter."""

    walk_entries: int = 50_000
    """Names that it may be asked to look at."""

    walk_bytes: int = 4 * MIB
    """The answer to a walk, about: more is left out, and said to be."""

    threads: int = 64
    """Calls of all clients at once.  One that hangs on a dead disk keeps its thread for as long."""

    connection_calls: int = 16
    """File calls of one connection at once: a quarter, so that no client can use all of them up."""


@value
class ConnectionLimits:
    """What one connection may cost."""

    connections: int = 4096
    """Connections at once, over all listeners."""

    undecided: int = 256
    """Sockets beyond them: room for health checks, and to tell others that we are full."""

    exchanges: int = 256
    """HTTP requests at once whose route waits, reads a body or sends a stream."""

    message_bytes: int = 64 * MIB
    """One inbound message, in one WebSocket frame or over several, or one line."""

    fragment_bytes: int = 8 * MIB
    """Outbound messages above this go out in fragments: peers refuse frames above 16 MiB."""

    output_bytes: int = MIB
    """Unsent bytes above which the connection's processes are no longer read."""

    unsent_bytes: int = 64 * MIB
    """Unsent bytes above which the connection's requests are no longer read."""

    waiting_requests: int = 4096
    """Requests that wait for their answer: long polls, blocked writes, starts."""

    waiting_bytes: int = 256 * MIB
    """What those requests may hold in memory together."""

    turn_seconds: float = 0.005
    """How long the requests of one connection are handled before others get their turn."""

    handshake_seconds: float = 10.0
    """From accept to a complete upgrade request."""

    ping_seconds: float = 30.0
    """Between two pings to a silent or talking peer."""

    pong_seconds: float = 20.0
    """From a ping to a sign of life; with the interval this finds a dead peer within 60 s."""

    close_seconds: float = 2.0
    """From our close frame to the peer's, before the socket is cut."""


@value
class ServerLimits:
    """All limits, by the names that ``--limit`` and metrics have for them: part, dot, limit."""

    engine: EngineLimits = EngineLimits()
    environment: EnvironmentLimits = EnvironmentLimits()
    sandbox: SandboxLimits = SandboxLimits()
    session: SessionLimits = SessionLimits()
    app: AppLimits = AppLimits()
    http: HttpLimits = HttpLimits()
    file: FileLimits = FileLimits()
    connection: ConnectionLimits = ConnectionLimits()


if not TYPE_CHECKING:
    __getattr__ = old_names(__name__, {"Limits": "ServerLimits"})
