"""Pages taken apart: everything that is left is told once and in order, and what is lost is said to be."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from holdfast.client.cursor import Closed, Event, Exited, events, number
from holdfast.engine.ring import Budget, Ring
from holdfast.engine.ring import page as page_of
from holdfast.errors import OutputGap
from holdfast.model import Chunk, Exit, Gap, Kind, Outcome, Page, Stream

END = Exit(3, Outcome(Kind.EXIT, 3))


def chunk(seq: int, size: int = 1) -> Chunk:
    return Chunk(seq, Stream.STDOUT, b"x" * size)


def told(page: Page, after: int = 0, *, exit_known: bool = False) -> list[object]:
    """Events, with errors as plain values: two errors are never equal."""
    return [plain(event) for event in events(page, after, exit_known=exit_known)]


def plain(event: Event) -> object:
    return ("gap", *event.args) if isinstance(event, OutputGap) else event


# Single pages.


def test_chunks_are_told_as_they_are() -> None:
    assert told(Page([chunk(1), chunk(2)], 3, None, closed=False)) == [chunk(1), chunk(2)]


def test_an_exit_has_the_number_that_is_missing() -> None:
    assert told(Page([chunk(1), chunk(3)], 4, END, closed=False)) == [chunk(1), Exited(2, END), chunk(3)]


def test_exit_and_close_are_the_last_two_numbers() -> None:
    assert told(Page([chunk(1)], 4, END, closed=True)) == [chunk(1), Exited(2, END), Closed(3)]


def test_a_close_is_the_last_number_also_if_somebody_spoke_after_the_exit() -> None:
    assert told(Page([chunk(1), chunk(3)], 5, END, closed=True)) == [
        chunk(1),
        Exited(2, END),
        chunk(3),
        Closed(4),
    ]


def test_what_is_known_is_not_told_again() -> None:
    assert told(Page([], 4, END, closed=True), 3, exit_known=True) == []
    assert told(Page([chunk(1), chunk(2)], 3, None, closed=False), 1) == [chunk(2)]


def test_output_that_is_gone_is_a_gap_with_its_size() -> None:
    page = Page([chunk(3)], 4, None, closed=False, gap=Gap(1, 2, 77))

    assert told(page) == [("gap", 1, 2, 77), chunk(3)]


def test_output_that_a_server_lost_without_a_word_is_a_gap_too() -> None:
    """Other servers do not say what is gone; the numbers do."""
    assert told(Page([chunk(3)], 4, None, closed=False)) == [("gap", 1, 2, None), chunk(3)]


def test_two_holes_are_two_gaps() -> None:
    """One gap over both would swallow what lies between them."""
    page = Page([chunk(3), chunk(6)], 7, None, closed=False, gap=Gap(1, 2, 5))

    assert told(page) == [("gap", 1, 2, 5), chunk(3), ("gap", 4, 5, None), chunk(6)]


def test_an_exit_behind_a_gap_is_not_taken_for_a_part_of_it() -> None:
    """
    A page with a limit ends behind its last chunk.  It says that there was an exit,
    which may still be to come: told now, it would be told before output that came before it.
    """
    page = Page([chunk(3)], 4, END, closed=True, gap=Gap(1, 2, 5))

    assert told(page) == [("gap", 1, 2, 5), chunk(3)]


def test_an_exit_that_is_gone_with_its_neighbours_is_told_where_they_were() -> None:
    page = Page([chunk(4)], 6, END, closed=True, gap=Gap(1, 3, 5))

    assert told(page) == [Exited(1, END), ("gap", 2, 3, 5), chunk(4), Closed(5)]


def test_an_exit_that_was_in_an_earlier_gap_is_told_when_nothing_is_left_to_hide_it() -> None:
    assert told(Page([], 5, END, closed=False), 4) == [Exited(4, END)]
    assert told(Page([], 6, END, closed=True), 4) == [Exited(4, END), Closed(5)]


def test_an_event_brings_its_reader_to_its_number() -> None:
    """A gap counts as its last number."""
    assert number(chunk(3)) == 3
    assert number(Exited(4, END)) == 4
    assert number(Closed(5)) == 5
    assert number(OutputGap(6, 9, None)) == 9


# Against the ring of the engine.


@dataclass
class Scene:
    """A process on a server, and what a client that reads page after page has been told of it."""

    ring: Ring
    history: list[Chunk | Exited | Closed] = field(default_factory=list)
    after: int = 0
    exit_known: bool = False
    told: list[Event] = field(default_factory=list)

    @property
    def next_seq(self) -> int:
        return len(self.history) + 1

    @property
    def exit(self) -> Exit | None:
        return END if any(isinstance(event, Exited) for event in self.history) else None

    @property
    def closed(self) -> bool:
        return bool(self.history) and isinstance(self.history[-1], Closed)

    def happen(self, what: str, size: int) -> None:
        seq = self.next_seq
        if self.closed or (what == "closed" and self.exit is None) or (what == "exited" and self.exit):
            return
        if what == "output":
            self.ring.append(chunk(seq, size))
            self.history.append(chunk(seq, size))
        else:
            self.history.append(Exited(seq, END) if what == "exited" else Closed(seq))

    def read(self, limit: int | None) -> int:
        """Read one page; return how many events it was."""
        page = page_of(
            self.ring, self.after, limit, next_seq=self.next_seq, end=self.exit, closed=self.closed
        )
        found = list(events(page, self.after, exit_known=self.exit_known))
        for event in found:
            assert not isinstance(event, Exited) or not self.exit_known
            self.exit_known |= isinstance(event, Exited)
            self.after = max(self.after, number(event))  # type: ignore[arg-type]
        self.told += found
        return len(found)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("output"), st.integers(1, 9)),
        st.tuples(st.just("exited"), st.just(0)),
        st.tuples(st.just("closed"), st.just(0)),
        st.tuples(st.just("read"), st.integers(1, 30)),
        st.tuples(st.just("read"), st.none()),
    ),
    max_size=40,
)


@given(steps=STEPS, kept=st.integers(1, 40), limit=st.integers(1, 30) | st.none(), start=st.integers(0, 12))
def test_whatever_is_left_is_told_once_and_in_order_and_the_rest_is_a_gap(
    steps: list[tuple[str, int | None]], kept: int, limit: int | None, start: int
) -> None:
    """A client that was away for any time, and reads in pages of any size, knows what it has and what not."""
    scene = Scene(Ring(limit=kept, chunks=1000, budget=Budget(10**9)), after=0)
    begun = False
    for what, size in steps:
        if what == "read":
            if not begun:
                # From anywhere that there is; an exit before it is told, since nobody has.
                begun, scene.after = True, min(start, len(scene.history))
                start = scene.after
            scene.read(size)
        else:
            assert size is not None
            scene.happen(what, size)
    if not begun:
        scene.after = start = min(start, len(scene.history))
    while scene.read(limit):
        pass

    covered: list[int] = []
    for event in scene.told:
        if isinstance(event, OutputGap):
            assert all(
                not isinstance(scene.history[seq - 1], Closed) for seq in range(event.first, event.last + 1)
            )
            covered += range(event.first, event.last + 1)
        elif isinstance(event, Exited):
            is_own = isinstance(scene.history[event.seq - 1], Exited) if event.seq else False
            # In its place, or anywhere if its place is gone or was before the start.
            exit_at = next(e.seq for e in scene.history if isinstance(e, Exited))
            if is_own:
                covered.append(event.seq)
            else:
                lost = [(e.first, e.last) for e in scene.told if isinstance(e, OutputGap)]
                assert exit_at <= start or any(a - 1 <= exit_at <= b for a, b in lost)
                if not covered or event.seq > covered[-1]:
                    covered.append(event.seq)
        else:
            assert event == scene.history[event.seq - 1]  # type: ignore[union-attr]
            covered.append(event.seq)  # type: ignore[union-attr]
    assert covered[:1] in ([], [start + 1], [start])
    assert [seq for seq in covered if seq > start] == list(range(start + 1, scene.next_seq))
    assert scene.exit_known == (scene.exit is not None)
