"""How a session begins, or goes on."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import pytest

from holdfast.client.connecting import shake_hands
from holdfast.errors import HoldfastError, SessionBusy, SessionUnknown
from holdfast.protocol.shapes import Signature
from tests.fakes.peer import info

P = TypeVar("P")
R = TypeVar("R")

ABOUT = {"clientName": "me", "holdfast": 1}


class Server:
    """Answers in turn."""

    def __init__(self, *answers: dict[str, Any] | HoldfastError) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, object]] = []

    async def ask(self, signature: Signature[P, R], params: P) -> R:
        self.asked.append((signature.name, msgspec.json.decode(msgspec.json.encode(params))))
        answer = self._answers.pop(0)
        if isinstance(answer, HoldfastError):
            raise answer
        return signature.read(msgspec.json.encode(answer))


def greeting(session: str = "s", **more: Any) -> dict[str, Any]:
    return {"sessionId": session, "environmentInfo": info("a", "b"), **more}


async def test_the_first_time_a_session_is_opened() -> None:
    server = Server(greeting())

    found = await shake_hands(server.ask, "me", None, frozenset())

    assert server.asked == [("initialize", ABOUT)]
    assert (found.session, found.features, found.forgotten) == ("s", frozenset("ab"), False)
    assert found.info.shell.path == "/bin/sh"


@pytest.mark.parametrize(
    ("features", "asked"),
    [
        ((), ("initialize", {"resumeSessionId": "old", **ABOUT})),
        (("sessionTakeOver",), ("session/takeOver", {"sessionId": "old", **ABOUT})),
    ],
)
async def test_a_session_is_resumed_in_the_best_way_there_is(
    features: tuple[str, ...], asked: tuple[str, object]
) -> None:
    server = Server(greeting("old"))

    found = await shake_hands(server.ask, "me", "old", frozenset(features))

    assert server.asked == [asked]
    assert (found.session, found.forgotten) == ("old", False)


async def test_a_session_that_is_gone_is_followed_by_a_new_one() -> None:
    server = Server(SessionUnknown("old"), greeting("new"))

    found = await shake_hands(server.ask, "me", "old", frozenset())

    assert server.asked[1] == ("initialize", ABOUT)
    assert (found.session, found.forgotten) == ("new", True)


async def test_other_refusals_are_for_the_caller() -> None:
    with pytest.raises(SessionBusy):
        await shake_hands(Server(SessionBusy("old")).ask, "me", "old", frozenset())


async def test_a_server_of_others_has_no_features() -> None:
    plain = {"shell": {"name": "sh", "path": "/bin/sh"}}
    server = Server({"sessionId": "s", "environmentInfo": plain})

    assert (await shake_hands(server.ask, "me", None, frozenset())).features == frozenset()


async def test_an_answer_that_is_none_is_no_greeting() -> None:
    with pytest.raises(msgspec.DecodeError):
        await shake_hands(Server({"sessionId": 1}).ask, "me", None, frozenset())
