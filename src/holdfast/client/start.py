"""A start on a server, and what is taken back when nobody waits for it any more.

What must hold:

1. Only a process that this request has started is ended.  A name alone does not say whose a process is:
   what is kept on a server is found by everybody under its name.
2. Nothing is started for somebody who has left: a request that was never sent is not sent, and one that
   was is not sent again.
3. Whoever asks for the name meanwhile is refused, so that nobody has the process that is to be ended.
"""

from __future__ import annotations

import asyncio
import os

import msgspec

from holdfast.errors import (
    Fault,
    FileFailed,
    HoldfastError,
    LinkLost,
    NameTaken,
    OutcomeUnknown,
    SpawnFailed,
)
from holdfast.protocol.inspecting import LIST, ListParams
from holdfast.protocol.processes import TERMINATE, TerminateParams
from holdfast.protocol.start import START, StartParams

from .calls import Answer, Within
from .link import Link


class RemoteStart:
    """One request for a process."""

    def __init__(
        self,
        link: Link,
        params: StartParams,
        *,
        named: bool,
        idempotent: bool = False,
        leaving: dict[str, RemoteStart],
    ) -> None:
        """
        Args:
            params: Of ``process/start``.
            named: Whether others can know the identifier; if not, whoever has it is ours.
            idempotent: Whether the process may be one that the same request has started before.
            leaving: The starts that are being taken back, by name; this one enters itself there.
        """
        self._link = link
        self._params = params
        self._name = params.process_id
        self.is_shared = params.keep
        self._named = named
        self._idempotent = idempotent
        self._leaving = leaving
        self._loop = asyncio.get_running_loop()
        self._answered: asyncio.Future[None] = self._loop.create_future()
        self._answer: Answer | None = None
        self._number: int | None = None
        self._first = 0  # The connection on which it is sent first.
        self._resent = False
        self._left = False
        self._ended = False
        self._settled = asyncio.Event()

    async def pid(self) -> int | None:
        """Ask for the process; return its PID, if the server sends it.

        Cancelling leaves no process behind, as soon as the server has said what became of the
        request.  If the connection breaks before that, a process that was to be kept may be left.

        Raises:
            NameTaken: There is a process of that name, also if it is what the same request of
                somebody else has started.
            OutcomeUnknown: The session is gone in which it was asked for.
        """
        await self._link.room()
        self._first = self._link.next_connection
        self._number = self._link.ask(START, self._params, self._on_answer, within=Within.ONE)
        try:
            await self._answered
        except asyncio.CancelledError:
            self._leave()
            raise
        assert self._answer is not None
        return self._result(self._answer)

    def _on_answer(self, answer: Answer) -> None:
        self._resent = self._link.connections > self._first
        self._answer = answer
        if self._left:
            self._settle(answer)
        elif not self._answered.done():
            self._answered.set_result(None)

    def _result(self, answer: Answer) -> int | None:
        if isinstance(answer, FileFailed):
            # A server that does not tell what was at fault.
            program = next(iter(self._params.argv), "")
            raise SpawnFailed(Fault.PROGRAM, program, os.strerror(answer.number), number=answer.number)
        is_taken = isinstance(answer, NameTaken) and answer.name == self._name
        if is_taken and self._resent and not self._named:
            return None  # A server that cannot be asked twice has been, and nobody else knows the name.
        if isinstance(answer, HoldfastError):
            raise answer
        try:
            result = START.read(answer)
        except msgspec.DecodeError as error:
            raise LinkLost(f"the server's answer to process/start makes no sense: {error}") from error
        if result.existing and not self._resent and not self._idempotent:
            raise NameTaken(self._name)
        return result.pid or None

    # Taking it back.

    async def settled(self) -> None:
        """Wait until it is known what became of it, and what has to be ended was asked for."""
        await self._settled.wait()

    def _leave(self) -> None:
        """Nobody waits any more.  The answer may be here already: others ran between it and its reader."""
        assert self._number is not None
        self._left = True
        self._leaving[self._name] = self
        if self._answer is not None:
            self._settle(self._answer)
        elif not self._link.stop_repeating(self._number):
            self._release()  # Nothing was asked for.
        elif not self._named:
            self._end()  # At once: a start can take as long as a disk does.
            self._release()

    def _settle(self, answer: Answer) -> None:
        """The answer is here, or there will be none."""
        if isinstance(answer, OutcomeUnknown) and self._named:
            self._look()
            return
        if not isinstance(answer, HoldfastError) and self._is_ours(answer):
            self._end()
        self._release()

    def _is_ours(self, answer: msgspec.Raw) -> bool:
        if not self._named:
            return True
        try:
            result = START.read(answer)
        except msgspec.DecodeError:
            return False
        # What was there before is ours if we have asked before, and nobody else can have.
        return not result.existing or (self._resent and not self.is_shared)

    def _look(self) -> None:
        """The connection broke before the answer: look for the process where only ours can be."""
        if self.is_shared:
            self._release()  # It may be another client's, and nobody can tell.
        elif "keep" not in self._link.features:
            self._end()  # All names are those of the session.
            self._release()
        else:
            self._link.ask(LIST, ListParams(), self._on_list, within=Within.OWN)

    def _on_list(self, answer: Answer) -> None:
        if not isinstance(answer, HoldfastError):
            try:
                listed = LIST.read(answer).processes
            except msgspec.DecodeError:
                listed = []
            if any(each.process_id == self._name and not each.kept for each in listed):
                self._end()
        self._release()

    def _end(self) -> None:
        """Have the process ended.  May be called twice."""
        if not self._ended:
            self._ended = True
            within = Within.ANY if self.is_shared else Within.OWN
            self._link.post(TERMINATE, TerminateParams(self._name), within=within)

    def _release(self) -> None:
        self._leaving.pop(self._name, None)
        self._settled.set()
