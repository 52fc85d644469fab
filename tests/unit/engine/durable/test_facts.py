"""What is written down of a process, as bytes and back."""

from __future__ import annotations

import marshal

import pytest

from holdfast.engine.durable.facts import (
    ProcessFacts,
    UnknownForm,
    pack_cause,
    pack_end,
    pack_facts,
    unpack_cause,
    unpack_end,
    unpack_facts,
)
from holdfast.host.outliving import HostFacts
from holdfast.model import (
    PLAIN,
    UNLIMITED,
    Cause,
    Denied,
    Exit,
    Kind,
    Limits,
    Outcome,
    ProcessTerms,
    Usage,
)
from holdfast.sandbox import Denial
from holdfast.value import replace

PLAINEST = ProcessFacts(b"", ("", "", False), terminal=False, stdin=False)
FULLEST = ProcessFacts(
    b"\0note\xff",
    ("issuer", "ann", True),
    terminal=True,
    stdin=True,
    terms=ProcessTerms(3.5, 1.25, 0.5, 1000, 0.0, Limits(memory=1 << 40, cpu=1.5, processes=3, files=64)),
    host=HostFacts(("/sys/fs/cgroup/x",), ("memory", "pids"), (True, 2)),
    audit="ab12-7",
)


@pytest.mark.parametrize("facts", [PLAINEST, FULLEST])
def test_facts_come_back_as_they_were(facts: ProcessFacts) -> None:
    assert unpack_facts(pack_facts(facts)) == facts


def test_the_objects_that_stand_for_nothing_are_the_same_ones() -> None:
    """The engine tells them by their identity."""
    found = unpack_facts(pack_facts(PLAINEST))
    timed = unpack_facts(pack_facts(replace(PLAINEST, terms=ProcessTerms(timeout=1.0))))

    assert found.terms is PLAIN
    assert timed.terms.limits is UNLIMITED


def test_terms_are_as_a_server_before_this_one_wrote_them_as_long_as_they_can_be() -> None:
    """It may be the one that goes on, after an upgrade or one that was taken back."""
    plain = ProcessTerms(1.0, 2.0, 3.0, 4, 5.0)
    cut = ProcessTerms(1.0, 2.0, 3.0, 4, 5.0, truncate=True)

    packed = [marshal.loads(pack_facts(replace(PLAINEST, terms=terms)))[2] for terms in (plain, cut)]  # noqa: S302

    assert packed == [((1.0, 2.0, 3.0, 4, 5.0), None), ((1.0, 2.0, 3.0, 4, 5.0, True), None)]
    assert unpack_facts(pack_facts(replace(PLAINEST, terms=cut))).terms == cut


def test_facts_of_another_form_are_not_guessed_at() -> None:
    form, *rest = marshal.loads(pack_facts(PLAINEST))  # noqa: S302  (our own bytes)

    with pytest.raises(UnknownForm, match=f"form {form + 1}, not {form}"):
        unpack_facts(marshal.dumps((form + 1, *rest)))


@pytest.mark.parametrize("cause", [None, Cause(Kind.TIMEOUT, "limit", "more than 1 second")])
def test_a_cause_comes_back_as_it_was(cause: Cause | None) -> None:
    assert unpack_cause(pack_cause(cause)) == cause


@pytest.mark.parametrize(
    "end",
    [
        Exit(0, Outcome(Kind.EXIT, 0)),
        Exit(
            137,
            Outcome(Kind.OOM, None, 9, "limit", "too much"),
            Usage(1, 2, 3),
            (4, 5),
            Denied(failed=True, exact=True, denials=(Denial("open", "/etc", 2),)),
        ),
        Exit(0, Outcome(Kind.EXIT, 0), dropped=12),
    ],
)
@pytest.mark.parametrize("drain_at", [None, 12.5])
def test_an_end_comes_back_as_it_was(end: Exit, drain_at: float | None) -> None:
    assert unpack_end(pack_end(end, drain_at)) == (end, drain_at)
