"""Rows, rates and orders of ``top``."""

from __future__ import annotations

import inspect

import pytest

from holdfast.cli.top_sample import SORT_KEYS, ProcessRow, Sample, ordered, row_document, rows_of
from holdfast.model import CurrentUsage, Listing, ProcessState
from holdfast.value import replace


def listed(name: str, *, state: str = ProcessState.RUNNING, **facts: object) -> Listing:
    listing = Listing(
        name=name,
        identifier=f"id-{name}",
        pid=7,
        argv=["sleep", "1 0"],
        cwd="/",
        terminal=False,
        started=100.0,
        state=state,
        exit_code=None,
        outcome=None,
        next_seq=1,
        retained=0,
    )
    return replace(listing, **facts)


def used(name: str, cpu_us: int = 0, memory: int = 0, output: int = 0, age: float = 0.0) -> CurrentUsage:
    return CurrentUsage(name, f"id-{name}", cpu_us, memory, 1, output, age)


def sample(at: float, *usages: CurrentUsage) -> Sample:
    return Sample(at, [listed(each.name) for each in usages], {each.identifier: each for each in usages})


def rates(now: Sample, before: Sample | None) -> list[tuple[float | None, float | None]]:
    return [(row.cpu, row.rate) for row in rows_of(now, before, now=0.0)]


def test_rates_are_differences_by_time() -> None:
    """A process that keeps two processors busy has 200 percent."""
    before = sample(10.0, used("a", 1_000_000, output=50))

    assert rates(sample(12.0, used("a", 5_000_000, output=250)), before) == [(200.0, 100.0)]


def test_the_time_is_that_of_the_looks_and_not_of_the_answers() -> None:
    """A server may tell what it saw a while ago, and a large tree is looked at less often."""
    before = sample(10.0, used("a", 0, age=0.5))
    now = sample(12.0, used("a", 1_000_000, age=1.5))

    assert rates(now, before) == [(100.0, 0.0)]


@pytest.mark.parametrize(
    ("now", "before"),
    [
        (sample(12.0, used("a")), None),
        (sample(12.0, used("a")), sample(10.0, used("b"))),
        (sample(12.0, used("a", age=2.0)), sample(10.0, used("a"))),
        (sample(12.0, used("a", 1)), sample(10.0, used("a", 2))),
        (sample(12.0, used("a", output=1)), sample(10.0, used("a", output=2))),
        (sample(12.0, used("a")), Sample(10.0, [listed("a")], None)),
        (Sample(12.0, [listed("a")], {}), sample(10.0, used("a"))),
        (Sample(12.0, [listed("a")], None), sample(10.0, used("a"))),
    ],
    ids=["first", "new", "same look", "less time", "less output", "old server", "ended", "another server"],
)
def test_a_rate_that_is_not_known_is_not_told(now: Sample, before: Sample | None) -> None:
    """The name may be another process's by now, whose figures are smaller."""
    assert rates(now, before) == [(None, None)]


def test_those_that_have_ended_are_shown_if_wanted() -> None:
    found = Sample(0.0, [listed("a"), listed("b", state=ProcessState.CLOSED, exit_code=3)], {})

    assert [row.name for row in rows_of(found, None, now=0.0)] == ["a"]
    assert [row.state for row in rows_of(found, None, now=0.0, ended=True)] == ["running", "exit 3"]


class WaitingListing(Listing):
    """Of a server that tells who waits for input."""

    def __getattribute__(self, name: str) -> object:
        return True if name == "waiting_for_input" else super().__getattribute__(name)


def test_a_process_that_waits_for_input_says_so() -> None:
    fields = {name: getattr(listed("a"), name) for name in inspect.signature(Listing).parameters}
    waits = WaitingListing(**fields)
    ended = WaitingListing(**{**fields, "state": ProcessState.EXITED, "exit_code": 0})

    states = [row.state for row in rows_of(Sample(0.0, [waits, ended], {}), None, now=0.0, ended=True)]

    assert states == ["waiting", "exit 0"]


def test_what_others_have_chosen_cannot_control_the_terminal() -> None:
    found = Sample(0.0, [listed("a\x1b[2J\n", argv=["x\x07"], state="\x1bodd")], {})

    (row,) = rows_of(found, None, now=150.0, ended=True)

    assert (row.name, row.command, row.state) == ("a\\x1b[2J\\n", "'x\\x07'", "\\x1bodd")
    assert row.listing.name == "a\x1b[2J\n"
    assert row.age == 50.0


ROWS = [
    ProcessRow(listed("b"), "b", "running", "make all", 10.0, used("b", memory=5), 1.0, 30.0),
    ProcessRow(listed("c"), "c", "waiting", "bash", 30.0, used("c", memory=9), None, None),
    ProcessRow(listed("a"), "a", "running", "make docs", 20.0, None, 9.0, 20.0),
]


@pytest.mark.parametrize(
    ("key", "names"),
    [("cpu", "abc"), ("memory", "cba"), ("output", "bac"), ("age", "bac"), ("name", "abc"), ("state", "abc")],
)
def test_rows_are_in_the_order_that_is_asked_for(key: str, names: str) -> None:
    def order(*, backwards: bool) -> str:
        return "".join(row.name for row in ordered(ROWS, key, backwards=backwards, words=""))

    assert order(backwards=False) == names
    if key != "state":
        assert order(backwards=True) == names[::-1]


def test_every_key_has_an_order() -> None:
    assert all(len(ordered(ROWS, key, backwards=False, words="")) == 3 for key in SORT_KEYS)


@pytest.mark.parametrize(
    ("words", "names"), [("make", "ab"), ("DOCS make", "a"), ("waiting", "c"), ("b", "bc"), ("none", "")]
)
def test_only_rows_with_all_of_the_words_are_shown(words: str, names: str) -> None:
    assert "".join(row.name for row in ordered(ROWS, "name", backwards=False, words=words)) == names


def test_a_document_has_what_ps_has_and_what_is_used() -> None:
    (row,) = rows_of(
        sample(12.0, used("a", 3_000_000, 4096, 100)), sample(10.0, used("a", 1_000_000)), now=0.0
    )

    document = row_document(row)

    assert (document["name"], document["argv"], document["state"]) == ("a", ["sleep", "1 0"], "running")
    assert (document["cpuPercent"], document["cpuMs"], document["residentBytes"]) == (100.0, 3000, 4096)
    assert (document["processes"], document["outputBytes"], document["outputBytesPerSecond"]) == (1, 100, 50)


def test_a_document_of_what_is_not_known_has_the_same_members() -> None:
    """Scripts look for them."""
    (row,) = rows_of(Sample(0.0, [listed("a")], None), None, now=0.0)
    (other,) = rows_of(sample(0.0, used("a")), None, now=0.0)

    assert row_document(row).keys() == row_document(other).keys()
    assert [row_document(row)[name] for name in ("cpuPercent", "residentBytes")] == [None, None]
