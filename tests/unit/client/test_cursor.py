"""Every event once and in order, whatever becomes of connections; and what is asked for on the way.

How the answer to a read is taken apart is in ``test_cursor_pages``.
"""

from __future__ import annotations

import os
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.allowance import Allowance
from holdfast.client import cursor as module
from holdfast.client.cursor import PULL_MS, Ask, Closed, Cursor, Event, Exited, number
from holdfast.config import MIB
from holdfast.engine.ring import Budget, Ring
from holdfast.engine.ring import page as page_of
from holdfast.errors import LinkLost, OutputGap
from holdfast.model import Chunk, Exit, Gap, Kind, Outcome, Page, Stream

END = Exit(3, Outcome(Kind.EXIT, 3))
MOST_SAID = 9
RUNS = 5000 if os.environ.get("HOLDFAST_LONG") else 500


def chunk(seq: int, size: int = 1) -> Chunk:
    return Chunk(seq, Stream.STDOUT, b"x" * size)


def make(**traits: int) -> Cursor:
    """A cursor of a process that runs."""
    made = Cursor(held=Allowance(MIB).grant(0), **traits)  # type: ignore[arg-type]
    made.started(missed=False)
    return made


def told(cursor: Cursor) -> list[int]:
    """The numbers of everything that can be told."""
    found = []
    while (event := cursor.next()) is not None:
        assert not isinstance(event, LinkLost)
        found.append(number(event))
    return found


# What is pushed.


def test_what_comes_in_order_is_told_and_nothing_is_asked_for() -> None:
    cursor = make()
    cursor.pushed(chunk(1))
    cursor.pushed(Exited(2, END))
    cursor.pushed(Closed(3))

    assert told(cursor) == [1, 2, 3]
    assert cursor.ask(wanted=True) is None
    assert cursor.is_over


def test_a_hole_is_asked_for_once() -> None:
    cursor = make()
    cursor.pushed(chunk(1))
    cursor.pushed(chunk(3))
    cursor.pushed(chunk(4))

    assert (cursor.ask(wanted=False), cursor.ask(wanted=False)) == (Ask(1), None)
    cursor.answered(Page([chunk(2), chunk(3), chunk(4)], 5, None, closed=False))
    assert told(cursor) == [1, 2, 3, 4]
    assert cursor.ask(wanted=False) is None


def test_what_comes_while_a_read_is_under_way_is_taken_if_it_is_the_next() -> None:
    cursor = make()
    cursor.resumed()
    assert cursor.ask(wanted=True) == Ask(0)
    cursor.pushed(chunk(1))
    cursor.answered(Page([chunk(1), chunk(2)], 3, None, closed=False))

    assert told(cursor) == [1, 2]


def test_a_process_that_does_not_run_yet_is_not_asked_about() -> None:
    """The server would say that there is none."""
    cursor = Cursor(held=Allowance(MIB).grant(0))
    cursor.resumed()
    assert cursor.ask(wanted=True) is None
    cursor.started(missed=True)

    assert cursor.ask(wanted=True) == Ask(0)


def test_a_chunk_that_skips_the_queue_counts_as_told() -> None:
    cursor = make()

    assert cursor.skips_queue(chunk(1))
    assert not cursor.skips_queue(chunk(3))
    assert (cursor.delivered, cursor.next()) == (1, None)


def test_what_waits_is_not_overtaken() -> None:
    cursor = make()
    cursor.pushed(chunk(1))

    assert not cursor.skips_queue(chunk(2))


# Bounds.


def test_without_a_window_what_does_not_fit_is_asked_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 3)
    cursor = make()
    for seq in (1, 2):
        cursor.pushed(chunk(seq, 2))
        assert cursor.ask(wanted=True) is None
    cursor.pushed(chunk(3, 2))  # Dropped.

    assert told(cursor) == [1, 2]
    assert cursor.ask(wanted=True) == Ask(2)


def test_with_a_window_the_server_waits_and_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 3)
    cursor = make(window=1000)
    for seq in range(1, 6):
        cursor.pushed(chunk(seq, 2))
        assert cursor.ask(wanted=True) is None

    assert told(cursor) == [1, 2, 3, 4, 5]


def test_half_a_window_is_acknowledged_and_many_small_pieces_are() -> None:
    cursor = make(window=10)
    cursor.pushed(chunk(1, 4))
    told(cursor)
    assert cursor.acknowledge() is None
    cursor.pushed(chunk(2, 1))
    told(cursor)
    assert (cursor.acknowledge(), cursor.acknowledge()) == (2, None)

    small = make(window=10**9)
    for seq in range(1, 5000):
        assert small.skips_queue(chunk(seq, 0))
        if (acknowledged := small.acknowledge()) is not None:
            assert acknowledged == 4096


# What is pulled.


def test_what_is_pulled_is_asked_for_while_somebody_wants_it() -> None:
    cursor = make(pulled=True)
    assert cursor.ask(wanted=False) is None
    ask = cursor.ask(wanted=True)
    assert ask is not None
    assert (ask.after, ask.wait_ms) == (0, PULL_MS)

    cursor.answered(Page([chunk(1)], 2, None, closed=False))
    assert cursor.ask(wanted=True) is None  # Not before what has come was told.
    assert told(cursor) == [1]
    assert cursor.ask(wanted=True) is not None


def test_an_exit_whose_number_is_not_known_is_not_waited_for() -> None:
    cursor = make(pulled=True)
    cursor.ask(wanted=True)
    cursor.answered(Page([chunk(1)], 2, END, closed=False))
    told(cursor)

    ask = cursor.ask(wanted=True)
    assert ask is not None
    assert (ask.after, ask.wait_ms) == (1, 0)


# The end.


def test_an_exit_that_was_lost_is_told_before_the_close() -> None:
    """Its number fell out of what is kept; the close is pushed while it is looked for."""
    cursor = make()
    cursor.resumed()
    cursor.ask(wanted=True)
    cursor.answered(Page([chunk(3)], 4, END, closed=False, gap=Gap(1, 2, 2)))
    assert cursor.ask(wanted=True) == Ask(3)
    cursor.pushed(Closed(4))
    cursor.answered(Page([], 5, END, closed=True))

    assert told(cursor) == [2, 3, 3, 4]


def test_nothing_follows_a_loss() -> None:
    cursor = make()
    cursor.pushed(chunk(1))
    error = LinkLost("gone")
    cursor.lost(error)
    cursor.lost(LinkLost("again"))
    cursor.pushed(chunk(2))
    cursor.resumed()

    assert [cursor.next(), cursor.next(), cursor.next()] == [chunk(1), error, None]
    assert cursor.ask(wanted=True) is None


# Against a server, over connections that break.


class Server:
    """A process on a server, one connection at a time, and a client with a cursor."""

    def __init__(self, *, kept: int, pulled: bool, window: int) -> None:
        self.kept = kept
        self.ring = Ring(limit=kept, chunks=1000, budget=Budget(10**9))
        self.history: list[Chunk | Exited | Closed] = []
        self.exit: Exit | None = None
        self.closed = False
        self.pulled = pulled
        self.pipe: deque[Chunk | Exited | Closed | Page] = deque()
        self.asked: Ask | None = None
        self.cursor = Cursor(pulled=pulled, window=window, held=Allowance(MIB).grant(0))
        self.told: list[Event] = []
        self.ready = False

    def happen(self, what: str, size: int) -> None:
        seq = len(self.history) + 1
        event: Chunk | Exited | Closed
        if self.closed or (what == "exit" and self.exit) or (what == "close" and self.exit is None):
            return
        if what == "say":
            event = chunk(seq, size)
            self.ring.append(event)
        elif what == "exit":
            event, self.exit = Exited(seq, END), END
        else:
            event, self.closed = Closed(seq), True
        self.history.append(event)
        if not self.pulled:
            self.pipe.append(event)

    def answer(self) -> None:
        """Answer the read that is under way, if there is one."""
        ask, self.asked = self.asked, None
        if ask is None:
            return
        page = page_of(
            self.ring,
            ask.after,
            ask.limit,
            next_seq=len(self.history) + 1,
            end=self.exit,
            closed=self.closed,
        )
        self.pipe.append(page)

    def deliver(self, count: int) -> None:
        for _ in range(min(count, len(self.pipe))):
            message = self.pipe.popleft()
            if isinstance(message, Page):
                self.waiting = None
                self.cursor.answered(message)
            elif isinstance(message, Chunk) and self.ready and self.cursor.skips_queue(message):
                self.told.append(message)
            else:
                self.cursor.pushed(message)
            self.advance()
            # What does not fit is dropped, except the rest of a page that is here already.
            bound = module.MOST_WAITING + self.kept + MOST_SAID
            assert self.cursor.window or self.pulled or self.cursor._waiting_bytes <= bound

    waiting: Ask | None = None
    """What was asked and not answered yet."""

    def advance(self) -> None:
        while self.ready and (event := self.cursor.next()) is not None:
            self.told.append(event)
        acknowledged = self.cursor.acknowledge()
        assert acknowledged is None or acknowledged == self.cursor.delivered
        ask = self.cursor.ask(wanted=self.ready)
        if ask is not None:
            assert self.waiting is None, "two reads at once"
            self.asked = self.waiting = ask

    def break_connection(self) -> None:
        """Lose what is under way, and come back; what was asked and not answered is asked again."""
        self.pipe.clear()
        self.cursor.resumed()
        self.asked = self.waiting
        self.advance()

    def do(self, what: str, size: int) -> None:
        if what in ("say", "exit", "close"):
            self.happen(what, size)
        elif what == "answer":
            self.answer()
        elif what == "deliver":
            self.deliver(size)
        elif what == "break":
            self.break_connection()
        elif what == "start":
            self.cursor.started(missed=bool(size % 2))
            self.advance()
        else:
            self.ready = what == "ready"
            self.advance()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["say", "say", "say", "exit", "close", "answer", "deliver", "deliver", "break", "ready", "shut"]
        ),
        st.integers(1, MOST_SAID),
    ),
    max_size=60,
)


@settings(max_examples=RUNS, deadline=None)
@given(
    steps=STEPS,
    begun=st.integers(0, 20),
    kept=st.integers(1, 60),
    waits=st.integers(1, 40),
    window=st.sampled_from([0, 0, 20, 1000]),
    pulled=st.booleans(),
)
def test_every_number_is_told_once_and_in_order_or_is_in_a_gap(
    steps: list[tuple[str, int]], *, begun: int, kept: int, waits: int, window: int, pulled: bool
) -> None:
    """However often connections break, answers are late, and whoever watches has no time."""
    before = module.MOST_WAITING
    module.MOST_WAITING = waits
    try:
        server = Server(kept=kept, pulled=pulled, window=window)
        for index, (what, size) in enumerate(steps):
            if index == begun:
                server.do("start", 1)
            server.do(what, size)
        for what in ("say", "exit", "close"):
            server.do(what, 1)
        server.do("start", 1)
        server.do("ready", 0)
        for _ in range(1000):
            if server.told and isinstance(server.told[-1], Closed):
                break
            server.answer()
            server.deliver(1)
    finally:
        module.MOST_WAITING = before

    assert isinstance(server.told[-1], Closed)
    expected = 1
    for event in server.told:
        if isinstance(event, OutputGap):
            # Only output can be in a gap, and an exit whose neighbours are gone.
            assert event.first == expected
            assert not isinstance(server.history[event.last - 1], Closed)
            expected = event.last + 1
        elif isinstance(event, Exited):
            # An exit that was lost with its neighbours comes where they were, or right behind.
            assert event.seq in (expected, expected - 1)
            expected = event.seq + 1
        else:
            assert not isinstance(event, LinkLost)
            assert event == server.history[expected - 1]
            expected += 1
    assert expected == len(server.history) + 1
    assert sum(isinstance(event, Exited) for event in server.told) == 1
