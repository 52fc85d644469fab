"""What happens when a limit is reached, and which metrics show it: the words of the reference table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """One limit."""

    happens: str
    counted: bool = False
    """Whether ``holdfast_limit_refusals_total`` counts it."""
    used: bool = False
    """Whether ``holdfast_limit_used`` shows how much of it is in use."""


_ERROR = "The request fails: [LimitReached](errors.md)."
_GAP = "The oldest is dropped, and told as a [gap](exec.md#outputgap)."
_AGAIN = "The oldest is forgotten; a retry of it would be written again."
_WAITS = "The request waits for its turn."
_FORGOTTEN = "The process is forgotten, and its name is free."
_CUT = "Output is cut there, and said to be."

_REFUSED = Bound(_ERROR, counted=True, used=True)

BOUNDS = {
    "engine.processes": _REFUSED,
    "engine.retained_bytes": Bound(_GAP, used=True),
    "engine.arena_bytes": Bound(
        "A start fails: [LimitReached](errors.md).  Of a process that says more, the oldest is dropped, and "
        "told as a [gap](exec.md#outputgap).  A write waits for its answer.",
        counted=True,
        used=True,
    ),
    "engine.retained_chunks": Bound(_GAP),
    "engine.arguments": Bound(_ERROR, counted=True),
    "engine.argument_bytes": Bound(_ERROR, counted=True),
    "engine.stdin_chunks": Bound("The write waits for its answer."),
    "engine.stdin_bytes": Bound("The write waits for its answer."),
    "engine.stop_seconds": Bound("The server ends all the same."),
    "engine.user_seconds": Bound("The start is refused: [UserRefused](errors.md)."),
    "engine.write_ids": Bound(_AGAIN),
    "engine.write_id_bytes": Bound(_AGAIN),
    "environment.variables": Bound(_ERROR, counted=True),
    "environment.name_bytes": Bound(_ERROR, counted=True),
    "environment.patterns": Bound(_ERROR, counted=True),
    "environment.pattern_bytes": Bound(_ERROR, counted=True),
    "sandbox.entries": Bound(_ERROR, counted=True),
    "sandbox.roots": Bound(_ERROR, counted=True),
    "sandbox.path_bytes": Bound(_ERROR, counted=True),
    "sandbox.text_bytes": Bound(_ERROR, counted=True),
    "sandbox.patterns": Bound(_ERROR, counted=True),
    "sandbox.matches": Bound(_ERROR, counted=True),
    "sandbox.names": Bound(_ERROR, counted=True),
    "sandbox.lookup_seconds": Bound(_ERROR, counted=True),
    "sandbox.lookup_threads": Bound(_WAITS),
    "sandbox.trial_seconds": Bound("Bubblewrap counts as not working; the server listens then."),
    "session.sessions": _REFUSED,
    "session.principals": _REFUSED,
    "session.names": _REFUSED,
    "session.name_bytes": _REFUSED,
    "session.detached_seconds": Bound("The session ends, and its processes with it."),
    "session.closed_seconds": Bound(_FORGOTTEN),
    "session.attached_bytes": Bound(_GAP),
    "session.detached_bytes": Bound(_GAP),
    "session.window_bytes": Bound("A larger window is this one."),
    "session.kept_names": _REFUSED,
    "session.kept_ended": Bound("The one that ended first is forgotten."),
    "session.kept_seconds": Bound(_FORGOTTEN),
    "session.answer_bytes": Bound("The answer ends there; the next request gets the rest."),
    "session.shell_snapshots": Bound("The one that was used longest ago is forgotten, and made again."),
    "session.shell_snapshot_bytes": Bound(
        "A snapshot is not kept: the next command makes it again.", used=True
    ),
    "session.loopback_ports": Bound(_ERROR, counted=True),
    "session.waiting_ends": _REFUSED,
    "session.probe_seconds": Bound("Its connection is ended (close code 1008), and the session goes on."),
    "app.names": _REFUSED,
    "app.name_bytes": _REFUSED,
    "app.opt_outs": Bound(_ERROR, counted=True),
    "app.opt_out_bytes": Bound(_ERROR, counted=True),
    "app.buffered_bytes": Bound(_CUT),
    "app.buffered_total": Bound(_CUT, used=True),
    "app.drain_seconds": Bound("The result has what came until then."),
    "app.process_quiet_seconds": Bound("The output counts as complete."),
    "app.command_quiet_seconds": Bound("The output counts as complete."),
    "http.requests": _REFUSED,
    "http.connection_requests": _REFUSED,
    "http.buffered_bytes": Bound(_ERROR, counted=True),
    "http.buffered_total": _REFUSED,
    "http.delta_bytes": Bound("A longer piece is told as several."),
    "http.headers": Bound(_ERROR, counted=True),
    "http.header_bytes": Bound(_ERROR, counted=True),
    "http.url_bytes": Bound(_ERROR, counted=True),
    "http.redirects": Bound("The request fails: `too many redirects`.", counted=True),
    "file.read_bytes": Bound("The request fails: `file is too large to read`.", counted=True),
    "file.at_once_bytes": Bound("The answer is sent in pieces."),
    "file.block_bytes": Bound("The request fails: `block length must be between`.", counted=True),
    "file.handles": _REFUSED,
    "file.handle_bytes": Bound("The request fails: `file handle ID must not exceed`.", counted=True),
    "file.entries": Bound("The request fails: `returned N entries; limit is`.", counted=True),
    "file.walk_depth": Bound("The request fails: `walk limits exceed maximums`.", counted=True),
    "file.walk_directories": Bound("The request fails: `walk limits exceed maximums`.", counted=True),
    "file.walk_entries": Bound("The request fails: `walk limits exceed maximums`.", counted=True),
    "file.walk_bytes": Bound("The rest is left out, and `truncated` is true."),
    "file.threads": Bound(_WAITS, used=True),
    "file.connection_calls": Bound(_WAITS, used=True),
    "connection.connections": Bound("The upgrade is refused: HTTP 503.", counted=True, used=True),
    "connection.undecided": Bound("The socket is closed.", counted=True, used=True),
    "connection.exchanges": Bound("The request is answered with HTTP 503.", counted=True, used=True),
    "connection.message_bytes": Bound("The connection ends: close code 1009.", counted=True),
    "connection.fragment_bytes": Bound("The message is sent in fragments."),
    "connection.output_bytes": Bound(
        "Its processes wait until it has read.  A client of plain HTTP is cut off.", counted=True
    ),
    "connection.unsent_bytes": Bound("Its requests wait until it has read.", used=True),
    "connection.waiting_requests": _REFUSED,
    "connection.waiting_bytes": _REFUSED,
    "connection.turn_seconds": Bound("The rest of what has arrived waits until others had their turn."),
    "connection.handshake_seconds": Bound("The socket is closed.", counted=True),
    "connection.ping_seconds": Bound("A ping is sent."),
    "connection.pong_seconds": Bound("The socket is closed; the session waits for its client.", counted=True),
    "connection.close_seconds": Bound("The socket is closed."),
}
"""By the names that ``--limit`` has for them."""
