"""Sessions, with a clock moved by hand."""

from __future__ import annotations

import uuid

import pytest

from holdfast.config import SessionLimits
from holdfast.dialects.exec.scopes import Session
from holdfast.dialects.exec.sessions import Sessions
from holdfast.errors import LimitReached, SessionBusy, SessionUnknown
from tests.fakes.dialects import FakeClient
from tests.fakes.exec_talk import a_tenant

LIMITS = SessionLimits(sessions=3, names=2, detached_seconds=30.0)
TENANT = a_tenant()


def expired(sessions: Sessions, now: float) -> list[Session]:
    return list(sessions.expire(now))


def test_each_session_has_a_key_of_its_own() -> None:
    """A version 4 UUID in its usual writing: others can guess it as little as they can find it."""
    sessions = Sessions(LIMITS)

    keys = {sessions.open(FakeClient(), TENANT).key for _ in range(3)}

    assert len(keys) == len(sessions) == 3
    assert all(str(uuid.UUID(key, version=4)) == key for key in keys)


def test_a_new_session_belongs_to_its_client() -> None:
    sessions, client = Sessions(LIMITS), FakeClient()

    session = sessions.open(client, TENANT)

    assert session.client is client
    assert sessions.find(session.key, TENANT) is session
    assert (session.extended, session.valve.is_open, list(session)) == (False, True, [])


@pytest.mark.parametrize("key", ["", "nope", "00000000-0000-4000-8000-000000000000"])
def test_a_key_that_was_never_given_is_unknown(key: str) -> None:
    with pytest.raises(SessionUnknown) as caught:
        Sessions(LIMITS).find(key, TENANT)

    assert caught.value.session == key


def test_a_key_is_compared_exactly() -> None:
    sessions = Sessions(LIMITS)
    key = sessions.open(FakeClient(), TENANT).key

    for near in (key.upper() + " ", key + " ", " " + key):
        with pytest.raises(SessionUnknown):
            sessions.find(near, TENANT)


def test_nobody_takes_a_session_that_has_a_client() -> None:
    sessions, holder = Sessions(LIMITS), FakeClient()
    session = sessions.open(holder, TENANT)

    with pytest.raises(SessionBusy) as caught:
        sessions.attach(session, FakeClient())

    assert caught.value.session == session.key
    assert session.client is holder


def test_a_session_without_a_client_is_removed_when_its_time_is_over_and_not_before() -> None:
    sessions = Sessions(LIMITS)
    session = sessions.open(FakeClient(), TENANT)

    sessions.detach(session, 100.0)

    assert session.client is None
    assert expired(sessions, 129.999) == []
    assert sessions.find(session.key, TENANT) is session
    assert expired(sessions, 130.0) == [session]
    assert len(sessions) == 0
    with pytest.raises(SessionUnknown):
        sessions.find(session.key, TENANT)


def test_the_next_deadline_is_that_of_the_longest_absence() -> None:
    sessions = Sessions(LIMITS)
    nobody_gone = sessions.next_deadline
    for now in (100.0, 105.0):
        sessions.detach(sessions.open(FakeClient(), TENANT), now)

    assert nobody_gone is None
    assert sessions.next_deadline == 130.0


def test_a_session_whose_client_came_back_stays() -> None:
    sessions, again = Sessions(LIMITS), FakeClient()
    session = sessions.open(FakeClient(), TENANT)
    sessions.detach(session, 100.0)

    sessions.attach(session, again)

    assert expired(sessions, 130.0) == []
    assert session.client is again


def test_an_old_deadline_does_not_count_for_a_later_absence() -> None:
    """Gone at 100, back, gone again at 120: it is kept until 150."""
    sessions = Sessions(LIMITS)
    session = sessions.open(FakeClient(), TENANT)
    sessions.detach(session, 100.0)
    sessions.attach(session, FakeClient())
    sessions.detach(session, 120.0)

    assert expired(sessions, 149.0) == []
    assert expired(sessions, 150.0) == [session]


def test_a_closed_session_is_gone_at_once_and_does_not_expire_again() -> None:
    sessions = Sessions(LIMITS)
    session = sessions.open(FakeClient(), TENANT)
    sessions.detach(session, 100.0)

    sessions.close(session)
    sessions.close(session)

    assert len(sessions) == 0
    assert expired(sessions, 200.0) == []


def test_a_session_that_ended_meanwhile_cannot_be_attached() -> None:
    """Somebody was asked for a sign of life while its time ran out."""
    sessions = Sessions(LIMITS)
    session = sessions.open(FakeClient(), TENANT)
    sessions.close(session)

    with pytest.raises(SessionUnknown):
        sessions.attach(session, FakeClient())

    assert session.client is None


def test_the_number_of_sessions_is_bounded() -> None:
    """Those without a client count: they hold processes too."""
    sessions = Sessions(LIMITS)
    opened = [sessions.open(FakeClient(), TENANT) for _ in range(3)]
    sessions.detach(opened[0], 0.0)

    with pytest.raises(LimitReached) as caught:
        sessions.open(FakeClient(), TENANT)
    sessions.close(opened[0])
    sessions.open(FakeClient(), TENANT)

    assert (caught.value.limit, caught.value.value) == ("sessions", 3)


def test_the_names_of_a_session_are_bounded() -> None:
    session = Sessions(LIMITS).open(FakeClient(), TENANT)
    for name in ("a", "b"):
        session.reserve(name)

    with pytest.raises(LimitReached):
        session.reserve("c")


def test_all_sessions_can_be_closed_at_once() -> None:
    """When the server stops."""
    sessions = Sessions(LIMITS)
    opened = [sessions.open(FakeClient(), TENANT) for _ in range(3)]
    sessions.detach(opened[0], 0.0)

    assert list(sessions.close_all()) == opened
    assert len(sessions) == 0
    assert expired(sessions, 100.0) == []
