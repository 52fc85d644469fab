"""Everything a user may do, and how often it does it."""

from __future__ import annotations

from bench.soaking import apps, control, files, garbage, processes, sessions, web, worst
from bench.soaking.user import Deed

EXEC: dict[Deed, float] = {
    processes.run: 6,
    processes.page_through: 3,
    processes.burst: 2,
    processes.long_poll: 3,
    processes.status: 8,
    processes.failing: 2,
    processes.limited: 3,
    processes.window: 2,
    processes.again: 2,
    processes.held_open: 1,
    processes.kept: 3,
    control.echo: 6,
    control.pipelined: 3,
    control.terminal: 3,
    control.raw_terminal: 2,
    control.signals: 3,
    control.grace: 2,
    control.tree: 2,
    control.cancelled: 2,
    control.sandboxed: 1,
    sessions.resume: 5,
    sessions.take_over: 2,
    sessions.close_session: 2,
    sessions.abandon: 1,
    sessions.slow_reader: 0.5,
    files.whole_files: 4,
    files.handles: 3,
    files.watch: 2,
    web.buffered: 2,
    web.broken: 1,
    web.streamed: 2,
    web.hanging: 0.5,
    garbage.malformed: 2,
    garbage.violation: 1,
    garbage.half_open: 1,
    garbage.mid_message: 1,
}

APP: dict[Deed, float] = {
    apps.spawn: 5,
    apps.spawn_buffered: 3,
    apps.spawn_echo: 5,
    apps.spawn_terminal: 3,
    apps.spawn_ended: 2,
    apps.spawn_failing: 2,
    apps.command: 4,
    apps.sandboxed_command: 0.5,
    apps.command_followed: 3,
    apps.command_terminated: 3,
    apps.drop: 1,
    garbage.malformed_app: 2,
    garbage.half_open: 1,
    garbage.mid_message: 1,
}

ADVERSARY: dict[Deed, float] = {worst.worst: 1}
"""What a client does that is up to no good."""

ONCE: list[Deed] = [control.sandboxed, files.whole_files, files.watch, web.buffered]
"""Deeds after which a server has made what it makes when it is first needed."""

ONCE_APP: list[Deed] = [apps.spawn_buffered, apps.sandboxed_command]
