"""What can be done with a process far away."""

from __future__ import annotations

import base64
import signal

import pytest

from holdfast.errors import LinkLost, NoTerminal, OutcomeUnknown, ProcessLost, SignalFailed, Unsupported
from holdfast.model import Ended, Page, Size, WriteStatus
from tests.fakes.following import chunk, page, scene
from tests.fakes.peer import FEATURES
from tests.fakes.remote import background
from tests.fakes.server import eventually

KEEP = (*FEATURES, "keep", "wait")


# Reading and waiting.


async def test_a_read_is_told_as_the_protocol_has_it() -> None:
    async with scene() as s:
        reading = background(s.process.read(after=3, limit=10, wait=1.5))
        asked = await s.read(page(chunk(4, b"x"), next_seq=5))

        assert asked == {"afterSeq": 3, "maxBytes": 10, "waitMs": 1500}
        found = await reading
        assert isinstance(found, Page)
        assert (found.chunks[0].data, found.next_seq) == (b"x", 5)


async def test_a_wait_ends_with_the_exit_or_with_its_time() -> None:
    async with scene() as s:
        assert await s.process.wait(0) is None
        assert await s.process.wait(0.01) is None
        waiting = background(s.process.wait(60))
        await eventually(lambda: s.process._waiting)
        s.say(1, b"not yet")
        s.exit(2, 4)
        end = await waiting

        assert end is not None
        assert end.code == 4
        assert await s.process.wait(0) is end


async def test_a_kept_process_is_waited_for_by_asking() -> None:
    async with scene(*KEEP, keep=True, watched=False) as s:
        waiting = background(s.process.wait(60))
        for exited in (False, True):
            asked = await s.talk.hear("process/wait")
            answer = {"exited": exited, "closed": False, "exitCode": 2 if exited else None}
            s.talk.answer(asked, answer)
        end = await waiting

        assert end is not None
        assert end.code == 2
        assert asked["params"]["waitMs"] == 10_000


# Stdin.


async def test_every_write_has_a_name_so_that_it_can_be_repeated() -> None:
    async with scene() as s:
        writing = background(s.process.write(b"hello"))
        first = await s.talk.hear("process/write")
        await s.reconnect()
        # What was missed is asked for before anything else.
        asked = [await s.talk.hear(), await s.talk.hear()]
        second = next(each for each in asked if each["method"] == "process/write")
        s.talk.answer(second, {"status": "accepted"})

        assert await writing is WriteStatus.ACCEPTED
        assert first["params"] == second["params"]
        assert base64.b64decode(first["params"]["chunk"]) == b"hello"
        other = background(s.process.write(b"hello"))
        third = await s.talk.hear("process/write")
        s.talk.answer(third, {"status": "stdinClosed"})
        assert await other is WriteStatus.STDIN_CLOSED
        assert third["params"]["writeId"] != first["params"]["writeId"]


async def test_a_long_write_goes_in_pieces_and_ends_with_the_first_that_is_refused() -> None:
    data = bytes(range(256)) * 2600
    async with scene() as s:
        writing = background(s.process.write(data, write_id="w"))
        pieces = []
        for status in ("accepted", "accepted", "stdinClosed"):
            asked = await s.talk.hear("process/write")
            pieces.append(base64.b64decode(asked["params"]["chunk"]))
            s.talk.answer(asked, {"status": status})

        assert await writing is WriteStatus.STDIN_CLOSED
        assert b"".join(pieces) == data


async def test_a_write_to_a_process_that_nobody_knows_is_a_loss() -> None:
    async with scene() as s:
        writing = background(s.process.write(b"x"))
        s.talk.answer(await s.talk.hear("process/write"), {"status": "unknownProcess"})

        with pytest.raises(ProcessLost):
            await writing


async def test_a_write_with_an_answer_that_nobody_knows_is_a_loss() -> None:
    async with scene() as s:
        writing = background(s.process.write(b"x"))
        s.talk.answer(await s.talk.hear("process/write"), {"status": "perhaps"})

        with pytest.raises(LinkLost, match="makes no sense"):
            await writing


async def test_stdin_is_closed_behind_what_was_written() -> None:
    async with scene() as s:
        closing = background(s.process.close_stdin())
        s.talk.answer(await s.talk.hear("process/closeStdin"), {"status": "accepted"})

        assert await closing is WriteStatus.ACCEPTED


# Control.


async def test_a_signal_is_sent_once() -> None:
    async with scene() as s:
        signalling = background(s.process.signal(signal.SIGUSR1, tree=True))
        asked = await s.talk.hear("process/signal")
        s.talk.abort()

        assert asked["params"] == {"processId": "p", "signal": "user1", "tree": True}
        with pytest.raises(OutcomeUnknown):
            await signalling


async def test_a_signal_without_a_word_is_refused() -> None:
    async with scene() as s:
        with pytest.raises(SignalFailed):
            await s.process.signal(signal.SIGWINCH)


async def test_an_end_says_who_was_left() -> None:
    async with scene() as s:
        ending = background(s.process.end(grace=0.25))
        asked = await s.talk.hear("process/terminate")
        s.talk.answer(asked, {"running": True, "survivors": [4], "treeExact": True})

        assert asked["params"] == {"processId": "p", "graceMs": 250}
        assert await ending == Ended(True, (4,), exact=True)


async def test_a_process_without_a_terminal_has_no_size() -> None:
    async with scene() as s:
        resizing = background(s.process.resize(Size(1, 2)))
        asked = await s.talk.hear("process/resize")
        s.talk.refuse(asked, -32600, "the process has no terminal", {"kind": "noTerminal"})

        with pytest.raises(NoTerminal):
            await resizing
        assert asked["params"]["size"] == {"rows": 1, "cols": 2}


async def test_a_process_that_the_server_forgot_is_lost() -> None:
    async with scene() as s:
        reading = background(s.process.read())
        s.talk.refuse(await s.talk.hear("process/read"), -32600, "unknown process id p")

        with pytest.raises(ProcessLost):
            await reading


async def test_a_server_that_cannot_is_not_asked() -> None:
    async with scene("list") as s:
        for call in (
            s.process.close_stdin(),
            s.process.resize(Size()),
            s.process.signal(signal.SIGTERM),
            s.process.signal(signal.SIGINT, tree=True),
        ):
            with pytest.raises(Unsupported):
                await call
        ending = background(s.process.end(grace=5))
        asked = await s.talk.hear("process/terminate")
        s.talk.answer(asked, {"running": False})
        await ending

        assert asked["params"] == {"processId": "p"}


async def test_a_process_that_is_released_is_no_longer_held_up() -> None:
    async with scene(*FEATURES, "window", window=100) as s:
        s.process.release()
        asked = await s.talk.hear("process/ack")

        assert asked["params"] == {"processId": "p", "release": True}


# Another session.


@pytest.mark.parametrize("sent", [True, False])
@pytest.mark.parametrize("what", ["terminate", "write", "signal"])
async def test_nothing_of_a_lost_session_is_asked_in_another(what: str, *, sent: bool) -> None:
    """There the name may mean what another client keeps: it would be theirs that is ended or written to."""
    async with scene() as s:

        async def do() -> object:
            if what == "terminate":
                return await s.process.end()
            if what == "write":
                return await s.process.write(b"x")
            await s.process.signal(signal.SIGTERM)
            return None

        if sent:
            asking = background(do())
            await s.talk.hear(f"process/{what}")
            await s.forget()
        else:
            s.talk.abort()
            s.talk = await s.server.accept()
            asking = background(do())
            s.talk.refuse(await s.talk.hear(), -32600, "unknown session id s1")
            await s.talk.shake_hands("s2", *FEATURES)

        with pytest.raises(OutcomeUnknown if what == "signal" and sent else ProcessLost):
            await asking
        listing = background(s.backend.list())
        s.talk.answer(await s.talk.hear("process/list"), {"processes": []})
        await listing


async def test_what_is_kept_for_everybody_is_asked_in_any_session() -> None:
    async with scene(*KEEP, keep=True, watched=False) as s:
        asking = background(s.process.end())
        await s.talk.hear("process/terminate")
        await s.forget()
        s.talk.answer(await s.talk.hear("process/terminate"), {"running": True})

        assert await asking == Ended(running=True, survivors=(), exact=False)


async def test_what_has_ended_is_not_signalled() -> None:
    """Once the server has forgotten it, the name may mean another's process."""
    async with scene() as s:
        s.exit(1)
        s.close(2)
        await s.witness.until("closed")

        await s.process.signal(signal.SIGTERM)

        listing = background(s.backend.list())
        s.talk.answer(await s.talk.hear("process/list"), {"processes": []})
        await listing
