"""What a process does, as the client is told."""

from __future__ import annotations

import base64
import json

import pytest

from holdfast.config import SessionLimits
from holdfast.dialects.exec.entries import Entry, Notifier, StartSummary
from holdfast.dialects.exec.scopes import Session
from holdfast.dialects.exec.window import Retention
from holdfast.model import Denied, Exit, Kind, Outcome, Stream, Usage
from holdfast.sandbox import Denial
from tests.fakes.dialects import FakeClient, FakeProcess, exited
from tests.fakes.exec_talk import a_tenant

REQUEST = StartSummary(b'"argv":[]', b"", None)


class Ledger:
    """Implements ``entries.EntryOwner``."""

    def __init__(self) -> None:
        self.entries: list[tuple[object, ...]] = []

    def closed(self, entry: Entry) -> None:
        self.entries.append(("closed", entry))

    def notify(self, entry: Entry, end: Exit | None) -> None:
        self.entries.append(("notify", entry, end))


class Scene:
    """A session with one process."""

    def __init__(self, name: str = "p", *, extended: bool = False) -> None:
        self.session = Session("s", a_tenant(), SessionLimits())
        self.session.extended = extended
        self.client = FakeClient()
        self.session.client = self.client
        self.process = FakeProcess()
        self.ledger = Ledger()
        self.entry = Entry(
            self.session,
            name,
            self.process,
            REQUEST,
            owner=self.ledger,
            retention=Retention(None, attached=10, detached=99),
        )


def output(seq: int, stream: str, data: bytes, name: str = "p") -> dict[str, object]:
    chunk = base64.b64encode(data).decode()
    return {
        "method": "process/output",
        "params": {"processId": name, "seq": seq, "stream": stream, "chunk": chunk},
    }


def test_a_life_is_told_byte_for_byte_as_the_reference_tells_it() -> None:
    scene = Scene("raw")

    scene.process.say(b"hi\n")
    scene.process.exit_with(0)
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
    scene.process.exit_with(3)
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

    scene.process.exit_with(code)

    assert json.loads(scene.client.raw[0])["params"]["exitCode"] == code


DENIED = Exit(
    1,
    Outcome(Kind.SANDBOX_DENIED, 1, by="sandbox", detail="open /x"),
    denied=Denied(failed=True, exact=True, denials=(Denial("open", "/x", 2),)),
)
TIMEOUT = Exit(137, Outcome(Kind.TIMEOUT, signal=9, by="limit"), Usage(1000, 2000, 3), held_by=(7,))
PLAIN_MEMBERS = {"processId", "seq", "exitCode", "sandboxDenied"}


@pytest.mark.parametrize(
    ("end", "extended", "more"),
    [
        (exited(3), False, set[str]()),
        (exited(3), True, {"outcome"}),
        (TIMEOUT, False, {"outcome", "heldBy"}),
        (TIMEOUT, True, {"outcome", "heldBy", "usage"}),
        (DENIED, False, {"outcome", "denials"}),
        (DENIED, True, {"outcome", "denials", "denial"}),
    ],
)
def test_an_exit_has_more_members_where_they_say_more(end: Exit, more: set[str], *, extended: bool) -> None:
    """A client of the reference sees the reference's own, unless they would mislead it."""
    scene = Scene(extended=extended)

    scene.process.exit_with(end=end)

    (told,) = scene.client.sent
    assert told["params"].keys() == PLAIN_MEMBERS | more
    assert told["params"]["exitCode"] == end.code
    assert told["params"]["sandboxDenied"] == (end is DENIED)


def test_a_client_that_came_back_is_told_as_much_as_it_knows_now() -> None:
    scene = Scene(extended=True)
    scene.session.client = again = FakeClient()
    scene.session.extended = False

    scene.process.exit_with(0)

    assert again.sent[0]["params"].keys() == PLAIN_MEMBERS


def test_while_the_client_is_away_nothing_is_told_and_the_record_is_kept() -> None:
    """What was missed can be read; what ended must still be forgotten."""
    scene = Scene()
    scene.session.client = None

    scene.process.say(b"unheard")
    scene.process.exit_with(1)
    scene.process.close()

    assert scene.client.raw == []
    assert scene.ledger.entries == [("closed", scene.entry)]


def test_a_client_that_came_back_is_told_what_happens_from_then_on() -> None:
    scene, again = Scene(), FakeClient()
    scene.process.say(b"first")
    scene.session.client = None
    scene.process.say(b"second")
    scene.session.client = again

    scene.process.say(b"third")

    assert scene.client.sent == [output(1, "stdout", b"first")]
    assert again.sent == [output(3, "stdout", b"third")]


def test_the_end_of_one_stream_is_not_told() -> None:
    """It has no number; clients of this dialect are told when all of them have ended."""
    scene = Scene()

    assert scene.process.watcher is not None
    scene.process.watcher.ended(Stream.STDOUT)

    assert (scene.client.raw, scene.ledger.entries) == ([], [])


def test_the_client_is_told_before_the_record() -> None:
    """The record may forget the process at once."""
    scene = Scene()
    scene.process.exit_with(0)
    scene.process.close()

    assert (len(scene.client.raw), len(scene.ledger.entries)) == (2, 1)


def test_a_process_is_watched_behind_the_valve_of_its_session() -> None:
    """One client that is behind holds up all processes of its session, and no others."""
    scene = Scene()

    assert isinstance(scene.process.watcher, Notifier)
    assert scene.process.valve is scene.session.valve


def test_a_new_entry_retains_what_an_attached_client_needs() -> None:
    entry = Scene("p").entry

    assert (entry.name, entry.retention.size) == ("p", 10)
    assert entry.request is REQUEST
