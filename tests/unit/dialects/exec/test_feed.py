"""What a process does, as the client is told."""

from __future__ import annotations

import base64
import json

import pytest

from holdfast.dialects.exec.feed import Feed
from holdfast.dialects.exec.sessions import Session
from holdfast.model import Stream
from tests.fakes.dialects import FakeClient, FakeProcess


class Ledger:
    """Implements ``feed.Record``."""

    def __init__(self) -> None:
        self.entries: list[tuple[object, ...]] = []

    def exited(self, feed: Feed, code: int) -> None:
        self.entries.append(("exited", feed, code))

    def closed(self, feed: Feed) -> None:
        self.entries.append(("closed", feed))


class Scene:
    """A session with one process."""

    def __init__(self, name: str = "p") -> None:
        self.session = Session("s", names=9)
        self.client = FakeClient()
        self.session.client = self.client
        self.process = FakeProcess()
        self.ledger = Ledger()
        self.feed = Feed(self.session, name, self.process, self.ledger, now=5.0)


def output(seq: int, stream: str, data: bytes, name: str = "p") -> dict[str, object]:
    chunk = base64.b64encode(data).decode()
    return {
        "method": "process/output",
        "params": {"processId": name, "seq": seq, "stream": stream, "chunk": chunk},
    }


def test_a_life_is_told_byte_for_byte_as_the_reference_tells_it() -> None:
    scene = Scene("raw")

    scene.process.say(b"hi\n")
    scene.process.exit(0)
    scene.process.close()

    assert scene.client.raw == [
        b'{"method":"process/output","params":{"processId":"raw","seq":1,"stream":"stdout","chunk":"aGkK"}}',
        b'{"method":"process/exited","params":{"processId":"raw","seq":2,"exitCode":0,"sandboxDenied":false}}',
        b'{"method":"process/closed","params":{"processId":"raw","seq":3}}',
    ]


@pytest.mark.parametrize("stream", list(Stream))
@pytest.mark.parametrize("size", [0, 1, 3000, 3072, 3073, 8192, 200_000])
def test_a_chunk_of_any_size_is_one_message(stream: Stream, size: int) -> None:
    """Large chunks are sent in parts, which must add up to the same."""
    scene, data = Scene(), bytes(index % 251 for index in range(size))

    scene.process.say(data, stream)

    assert scene.client.sent == [output(1, stream.value, data)]


@pytest.mark.parametrize("name", ["", 'a\n"é\\', "\0", "😀", "%d %b", "x" * 1000])
def test_a_name_of_any_text_comes_back_as_it_was_given(name: str) -> None:
    scene = Scene(name)

    scene.process.say(b"a")
    scene.process.say(b"b" * 8192)
    scene.process.exit(3)
    scene.process.close()

    assert scene.client.sent == [
        output(1, "stdout", b"a", name),
        output(2, "stdout", b"b" * 8192, name),
        {
            "method": "process/exited",
            "params": {"processId": name, "seq": 3, "exitCode": 3, "sandboxDenied": False},
        },
        {"method": "process/closed", "params": {"processId": name, "seq": 4}},
    ]


@pytest.mark.parametrize("code", [-1, 0, 137, 255])
def test_every_exit_code_is_told_as_a_number(code: int) -> None:
    scene = Scene()

    scene.process.exit(code)

    assert json.loads(scene.client.raw[0])["params"]["exitCode"] == code


def test_while_the_client_is_away_nothing_is_told_and_the_record_is_kept() -> None:
    """What was missed can be read; what ended must still be counted and forgotten."""
    scene = Scene()
    scene.session.client = None

    scene.process.say(b"unheard")
    scene.process.exit(1)
    scene.process.close()

    assert scene.client.raw == []
    assert scene.ledger.entries == [("exited", scene.feed, 1), ("closed", scene.feed)]


def test_a_client_that_came_back_is_told_what_happens_from_then_on() -> None:
    scene, again = Scene(), FakeClient()
    scene.process.say(b"first")
    scene.session.client = None
    scene.process.say(b"second")
    scene.session.client = again

    scene.process.say(b"third")

    assert scene.client.sent == [output(1, "stdout", b"first")]
    assert again.sent == [output(3, "stdout", b"third")]


def test_the_client_is_told_before_the_record() -> None:
    """The record may forget the process at once."""
    scene = Scene()
    scene.process.exit(0)

    assert len(scene.client.raw) == len(scene.ledger.entries) == 1


def test_a_process_is_watched_behind_the_valve_of_its_session() -> None:
    """One client that is behind holds up all processes of its session, and no others."""
    scene = Scene()

    assert scene.process.watcher is scene.feed
    assert scene.process.valve is scene.session.valve


def test_a_new_feed_is_neither_terminated_nor_roomy() -> None:
    feed = Scene("p").feed

    assert (feed.name, feed.started, feed.terminated, feed.roomy) == ("p", 5.0, False, False)
