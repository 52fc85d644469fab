"""What lets processes outlive the server: the keeper, the spare that forks servers, and the take-over."""

from __future__ import annotations

import gc
import importlib
import logging
import os
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.config import EngineLimits
from holdfast.host import arena, keeper
from holdfast.host.arena_probe import probe
from holdfast.host.keeper import Handover, KeptForkServer
from holdfast.host.limits import Groups, find_groups
from holdfast.host.sandbox.confinement import Confiner
from holdfast.server.listen import Listen, Stdio
from holdfast.value import value

from .serve_options import DURABILITY_OFF, DURABILITY_ON

if TYPE_CHECKING:
    from holdfast.engine.durable.recovery import DurableStore

_log = logging.getLogger(__name__)

_LATER = ("dialects.exec.methods",)
"""Modules that clients need as soon as they resume; the spare has them before it is asked for a server."""


class NotDurable(Exception):
    """Processes cannot outlive the server as was asked; ``str`` of this says why."""


@value
class Inheritance:
    """What the spare has found out once, for all servers that it forks."""

    confiner: Confiner
    groups: Groups


@value
class Takeover:
    """What a server has from its keeper."""

    handover: Handover
    fork_server: KeptForkServer
    store: DurableStore
    keeper: int
    """The pid of the keeper."""
    inheritance: Inheritance | None
    """What the spare has found out; None for the first server, which is forked before."""

    @property
    def restarts(self) -> int:
        """How many servers there were before this one."""
        return self.handover.generation - 1


def begin(
    choice: str, where: list[Listen], limits: EngineLimits, files_limit: tuple[int, int] | None
) -> socket.socket | None:
    """Become the keeper, and go on as the spare: return its socket to the keeper; None if nothing is kept.

    Raises:
        NotDurable: It was asked for, and cannot be.
    """
    control = keeper.join()
    if control is not None:
        return control  # The keeper has started us, because the spare before us has died.
    why = _obstacle(choice, where, limits)
    if why is not None:
        if choice == DURABILITY_ON:
            raise NotDurable(f"processes cannot outlive the server: {why}")
        _log.info("processes end with the server: %s", why)
        return None
    memory, stage = arena.create(arena.size_for(limits.retained_bytes)), arena.create_stage()
    again = [sys.executable, "-m", "holdfast", *sys.argv[1:]]
    return keeper.begin(memory, stage, files_limit, again)


def _obstacle(choice: str, where: list[Listen], limits: EngineLimits) -> str | None:
    """Why processes cannot outlive the server; None if they can."""
    if choice == DURABILITY_OFF:
        return "durability is switched off"
    if Stdio() in where:
        return "the client on standard input ends with the server"
    return probe(arena.size_for(limits.retained_bytes))


def be_spare(
    control: socket.socket,
    make_confiner: Callable[[], Confiner],
    serve: Callable[[Takeover], int],
    limits: EngineLimits,
) -> int:
    """Fork servers for the keeper until it is gone, and serve in each of them; return the exit code."""
    # Before the first server is forked, which needs it, and not where there is no durability.
    recovery = importlib.import_module("holdfast.engine.durable.recovery")
    _rename("holdfast-spare")
    keeper_pid = os.getppid()
    found: list[Inheritance] = []

    def prepare() -> None:
        """After the first server was forked: have ready what the next ones need."""
        for name in _LATER:
            importlib.import_module(f"holdfast.{name}")
        confiner = make_confiner()
        _ = confiner.guarantees  # Waits until they are known.
        found.append(Inheritance(confiner, find_groups(keeper_pid)))
        gc.collect()
        gc.freeze()

    def make_server(end: socket.socket) -> int:
        _rename("holdfast-server")
        handover = keeper.receive_handover(end)
        store: DurableStore = recovery.DurableStore(
            arena.Arena(handover.arena, handover.stage, limit=limits.arena_bytes)
        )
        return serve(Takeover(handover, KeptForkServer(end), store, keeper_pid, found[0] if found else None))

    # The collector writes to every object that it looks at; what is there by now stays shared with servers.
    gc.freeze()
    return keeper.spare_loop(control, make_server, prepare)


def _rename(name: str) -> None:
    """Show another name in lists of processes."""
    try:
        with open("/proc/self/comm", "w") as file:
            file.write(name)
    except OSError:
        pass  # It is only for people who look.
