"""Starts on a server, above all those that nobody waits for any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.client.process import RemoteProcess
from holdfast.client.remote import RemoteBackend
from holdfast.errors import LinkLost, NameTaken, OutcomeUnknown
from holdfast.place import Naming
from tests.fakes.peer import FEATURES, Message, Peer, Talk, peer
from tests.fakes.process import command
from tests.fakes.remote import background, far

KEEPS = (*FEATURES, "keep")
WEB: Message = {
    "processId": "web",
    "argv": ["x"],
    "cwd": "file:///",
    "tty": False,
    "startedAtMs": 1000,
    "state": "running",
    "pid": 9,
    "exitCode": None,
    "outcome": None,
    "nextSeq": 4,
    "retainedBytes": 0,
}


class Scene:
    """A start that was asked for, its client and its server."""

    def __init__(self, server: Peer, talk: Talk, backend: RemoteBackend) -> None:
        self.server = server
        self.talk = talk
        self.backend = backend
        self.asked: Message = {}
        self.starting: asyncio.Task[RemoteProcess] | None = None

    async def start(self, *, name: str | None = "web", keep: bool = False) -> asyncio.Task[RemoteProcess]:
        """Begin a start; returns when the server has been asked."""
        self.starting = background(self.backend.start(command("x"), Naming(name=name, keep=keep)))
        self.asked = await self.talk.hear("process/start")
        return self.starting

    def answer(self, **more: object) -> None:
        self.talk.answer(self.asked, {"processId": self.asked["params"]["processId"], "pid": 7, **more})

    async def cancel(self) -> None:
        """Leave the start, as whoever is out of patience does."""
        assert self.starting is not None
        self.starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.starting

    async def ended(self) -> Message:
        """The next request, which has to be one to end a process."""
        params: Message = (await self.talk.hear("process/terminate"))["params"]
        return params

    async def nothing_was_asked(self) -> None:
        """Whatever the client asks for because of what it was told comes before the second question.

        The first may be sent before it has read that.  Its answer is read behind it.
        """
        for _ in range(2):
            asking = background(self.backend.list())
            self.talk.answer(await self.talk.hear("process/list"), {"processes": []})
            await asking

    async def break_off(self, session: str = "s1") -> None:
        """Break the connection and accept the next one."""
        self.talk.abort()
        self.talk = await self.server.welcome(session, *KEEPS)

    async def forget(self) -> None:
        """Break the connection; the next one has a session of its own."""
        self.talk.abort()
        self.talk = await self.server.accept()
        self.talk.refuse(await self.talk.hear("initialize"), -32600, "unknown session id s1")
        await self.talk.shake_hands("s2", *KEEPS)


@asynccontextmanager
async def scene(*features: str) -> AsyncIterator[Scene]:
    async with peer() as server, far(server, *(features or KEEPS)) as (backend, talk):
        yield Scene(server, talk, backend)


# Not cancelled.


async def test_a_process_that_was_there_before_is_not_ours() -> None:
    """Servers answer the same request with the same process: another client's, if the name is kept."""
    async with scene() as s:
        starting = await s.start(keep=True)
        s.answer(existing=True)

        with pytest.raises(NameTaken):
            await starting


async def test_after_a_break_it_may_be_there_because_of_us() -> None:
    async with scene() as s:
        starting = await s.start(keep=True)
        await s.break_off()
        s.asked = await s.talk.hear("process/start")
        s.answer(existing=True)

        assert (await starting).pid == 7


async def test_what_is_asked_without_a_connection_is_asked_once() -> None:
    """The connection on which it is sent first is the next one."""
    async with scene() as s:
        s.talk.abort()
        s.talk = await s.server.accept()
        starting = background(s.backend.start(command("x"), Naming(name="web")))
        await asyncio.sleep(0)
        await s.talk.shake_hands("s1", *KEEPS)
        s.asked = await s.talk.hear("process/start")
        s.answer(existing=True)

        with pytest.raises(NameTaken):
            await starting


async def test_a_start_is_not_done_again_in_another_session() -> None:
    """It may have run in the one that is gone: a command that must run once would run twice."""
    async with scene() as s:
        starting = await s.start()
        await s.forget()

        with pytest.raises(OutcomeUnknown):
            await starting
        await s.nothing_was_asked()


async def test_an_answer_that_makes_no_sense_is_an_error_of_ours() -> None:
    async with scene() as s:
        starting = await s.start()
        s.talk.answer(s.asked, {"nothing": 1})

        with pytest.raises(LinkLost, match="process/start makes no sense"):
            await starting


# Cancelled before it was sent.


async def test_what_was_never_sent_is_not_sent_later() -> None:
    async with scene() as s:
        s.talk.abort()
        s.talk = await s.server.accept()
        s.starting = background(s.backend.start(command("x"), Naming(name="web")))
        await asyncio.sleep(0)
        await s.cancel()
        await s.talk.shake_hands("s1", *KEEPS)

        await s.nothing_was_asked()
        await s.start()  # The name is free.


async def test_a_start_that_waits_for_room_has_nothing_to_take_back() -> None:
    async with scene() as s:
        s.starting = background(s.backend.start(command("x"), Naming(name="web")))
        s.starting.cancel()  # Before its first step.
        with pytest.raises(asyncio.CancelledError):
            await s.starting

        await s.nothing_was_asked()


# Cancelled while it is on its way.


@pytest.mark.parametrize("keep", [False, True])
async def test_a_name_that_is_anothers_is_left_alone(keep: bool) -> None:  # noqa: FBT001
    """The name may mean a process that another client keeps: to end it by name would end theirs."""
    async with scene() as s:
        await s.start(keep=keep)
        await s.cancel()
        s.talk.refuse(s.asked, -32600, "process web already exists")

        await s.nothing_was_asked()


@pytest.mark.parametrize("keep", [False, True])
async def test_what_the_answer_says_that_we_started_is_ended(keep: bool) -> None:  # noqa: FBT001
    async with scene() as s:
        await s.start(keep=keep)
        await s.cancel()
        s.answer(existing=False)

        assert await s.ended() == {"processId": "web"}


async def test_what_was_there_before_is_left_alone() -> None:
    """Another client has made the very same request before us."""
    async with scene() as s:
        await s.start(keep=True)
        await s.cancel()
        s.answer(existing=True)

        await s.nothing_was_asked()


async def test_a_name_that_nobody_can_guess_is_ended_at_once() -> None:
    """A start can take as long as a disk does; this one need not be waited for."""
    async with scene() as s:
        await s.start(name=None)
        await s.cancel()

        assert await s.ended() == {"processId": s.asked["params"]["processId"]}


async def test_until_it_is_known_what_became_of_it_the_name_is_taken() -> None:
    """Or whoever is next to have the name would lose the process to the one before."""
    async with scene() as s:
        await s.start()
        await s.cancel()
        with pytest.raises(NameTaken):
            await s.backend.start(command("x"), Naming(name="web"))
        s.talk.refuse(s.asked, -32600, "process web already exists")
        await s.nothing_was_asked()

        await s.start()


# Cancelled as the answer comes.


@pytest.mark.parametrize("name", ["web", None])
async def test_an_answer_and_a_cancellation_in_one_moment_leave_no_process(name: str | None) -> None:
    """The task was woken by the answer and is cancelled before it runs."""
    async with scene() as s:
        starting = await s.start(name=name)
        told = s.backend._link.received

        def received(message: bytes | memoryview) -> None:
            told(message)
            starting.cancel()

        s.backend._link.received = received  # type: ignore[method-assign]
        s.answer(existing=False)
        with pytest.raises(asyncio.CancelledError):
            await starting

        assert await s.ended() == {"processId": s.asked["params"]["processId"]}


async def test_an_answer_right_behind_a_cancellation_is_heard() -> None:
    """The task is cancelled and has not run yet when the answer comes."""
    async with scene() as s:
        starting = await s.start()
        told = s.backend._link.received

        def received(message: bytes | memoryview) -> None:
            starting.cancel()
            told(message)

        s.backend._link.received = received  # type: ignore[method-assign]
        s.answer(existing=False)
        with pytest.raises(asyncio.CancelledError):
            await starting

        assert await s.ended() == {"processId": "web"}


# Cancelled, and the connection breaks.


async def test_after_a_break_it_is_not_started_for_nobody() -> None:
    """The session is asked whether it has such a process, and only that one is ended."""
    async with scene() as s:
        await s.start()
        await s.cancel()
        await s.break_off()
        listing = await s.talk.hear("process/list")
        s.talk.answer(listing, {"processes": [WEB]})

        assert await s.ended() == {"processId": "web"}


@pytest.mark.parametrize("found", [[], [{**WEB, "kept": True}], [{**WEB, "processId": "other"}]])
async def test_after_a_break_what_is_not_of_the_session_is_left_alone(found: list[Message]) -> None:
    async with scene() as s:
        await s.start()
        await s.cancel()
        await s.break_off()
        s.talk.answer(await s.talk.hear("process/list"), {"processes": found})

        await s.nothing_was_asked()
        await s.start()


async def test_a_list_that_makes_no_sense_ends_nothing() -> None:
    async with scene() as s:
        await s.start()
        await s.cancel()
        await s.break_off()
        s.talk.answer(await s.talk.hear("process/list"), {"nothing": 1})

        await s.nothing_was_asked()


async def test_a_break_before_the_cancellation_is_no_different() -> None:
    async with scene() as s:
        await s.start()
        s.talk.abort()
        s.talk = await s.server.accept()
        await s.cancel()
        await s.talk.shake_hands("s1", *KEEPS)
        s.talk.answer(await s.talk.hear("process/list"), {"processes": [WEB]})

        assert await s.ended() == {"processId": "web"}


async def test_a_server_that_keeps_nothing_has_names_of_the_session_only() -> None:
    async with scene(*FEATURES) as s:
        await s.start()
        await s.cancel()
        s.talk.abort()
        s.talk = await s.server.welcome("s1", *FEATURES)

        assert await s.ended() == {"processId": "web"}


async def test_after_a_break_nobody_knows_whose_a_kept_process_is() -> None:
    """It is left: it was to outlive us in any case, and may be another's."""
    async with scene() as s:
        await s.start(keep=True)
        await s.cancel()
        await s.break_off()

        await s.nothing_was_asked()


async def test_an_answer_behind_a_break_is_about_the_session() -> None:
    """Asked twice before it was cancelled: it is there because of us, unless it is kept for everybody."""
    async with scene() as s:
        await s.start()
        await s.break_off()
        s.asked = await s.talk.hear("process/start")
        await s.cancel()
        s.answer(existing=True)

        assert await s.ended() == {"processId": "web"}


async def test_in_another_session_nothing_is_ended() -> None:
    """What was started has ended with its session; the name is another's there."""
    async with scene() as s:
        await s.start()
        await s.cancel()
        s.answer(existing=False)
        await s.ended()
        await s.forget()

        await s.nothing_was_asked()


# The end.


async def test_a_client_that_leaves_waits_until_a_kept_process_is_taken_back() -> None:
    """Its session ends with it, and a kept process does not."""
    async with scene() as s:
        await s.start(keep=True)
        await s.cancel()
        closing = background(s.backend.aclose())
        s.answer(existing=False)

        assert await s.ended() == {"processId": "web"}
        s.talk.answer(await s.talk.hear("session/close"), {})
        await s.talk.left()
        await closing
