"""What one principal has at the endpoint; the clock is a number."""

from __future__ import annotations

import pytest

from holdfast.config import SessionLimits
from holdfast.dialects.exec.scopes import Tenants
from holdfast.errors import LimitReached
from holdfast.principal import ANYBODY, Grant, Principal
from tests.fakes.dialects import FakeBackend

LIMITS = SessionLimits(principals=2, kept_seconds=10.0, kept_ended=2)
A, B = Principal("a", "i"), Principal("b", "i")


def tenants() -> Tenants:
    return Tenants(LIMITS)


# Who is in which.


def test_whoever_has_another_token_of_the_same_principal_is_in_the_same_tenant() -> None:
    """Tokens are renewed, and may allow less; who comes with them stays the same."""
    all_of_them = tenants()

    first = all_of_them.enter(A, FakeBackend())
    second = all_of_them.enter(Principal("a", "i", Grant(processes=1)), FakeBackend())

    assert first is second
    assert (first.clients, first.identity, list(all_of_them)) == (2, A.identity, [first])


@pytest.mark.parametrize("other", [B, Principal("a", "j"), Principal("a"), Principal("", "i"), ANYBODY])
def test_whoever_differs_in_name_or_issuer_is_in_another_tenant(other: Principal) -> None:
    all_of_them = tenants()

    assert all_of_them.enter(A, FakeBackend()) is not all_of_them.enter(other, FakeBackend())


def test_a_name_and_an_issuer_are_not_put_together_to_one_text() -> None:
    """Or somebody could choose a name with which it becomes another."""
    all_of_them = tenants()

    assert all_of_them.enter(Principal("b", "a/"), FakeBackend()) is not all_of_them.enter(
        Principal("/b", "a"), FakeBackend()
    )


def test_only_so_many_principals_are_let_in() -> None:
    all_of_them = tenants()
    first = all_of_them.enter(A, FakeBackend())
    all_of_them.enter(B, FakeBackend())

    with pytest.raises(LimitReached) as caught:
        all_of_them.enter(ANYBODY, FakeBackend())
    assert (caught.value.limit, caught.value.value, caught.value.name) == (
        "principals",
        2,
        "session.principals",
    )

    assert all_of_them.enter(A, FakeBackend()) is first
    all_of_them.leave(first)
    all_of_them.leave(first)
    all_of_them.enter(ANYBODY, FakeBackend())
    assert len(all_of_them) == 2


# How long it is there.


def test_a_tenant_goes_with_the_last_client() -> None:
    all_of_them = tenants()
    tenant = all_of_them.enter(A, FakeBackend())
    all_of_them.enter(A, FakeBackend())

    empty = []
    for _ in range(2):
        all_of_them.leave(tenant)
        empty.append((tenant.is_empty, len(all_of_them)))

    assert empty == [(False, 1), (True, 0)]


def test_a_session_keeps_the_tenant() -> None:
    all_of_them = tenants()
    tenant = all_of_them.enter(A, FakeBackend())
    tenant.sessions += 1
    all_of_them.leave(tenant)
    assert all_of_them.enter(A, FakeBackend()) is tenant
    all_of_them.leave(tenant)

    tenant.sessions -= 1
    all_of_them.tidy(tenant)

    assert len(all_of_them) == 0
    all_of_them.tidy(tenant)  # Once more, without harm.


def test_a_kept_process_keeps_the_tenant_until_its_time_is_over() -> None:
    all_of_them = tenants()
    tenant = all_of_them.enter(A, FakeBackend())
    tenant.shared.reserve("p")
    all_of_them.leave(tenant)

    assert list(all_of_them.ended(tenant, "p", 100.0)) == []
    assert all_of_them.next_deadline == 110.0
    assert list(all_of_them.due(109.9)) == []
    assert list(all_of_them.due(110.0)) == [(tenant, "p")]
    tenant.shared.release("p")
    all_of_them.tidy(tenant)

    assert len(all_of_them) == 0
    assert list(all_of_them.due(999.0)) == []


# Ends.


def test_ends_are_due_in_their_order_whoever_they_belong_to() -> None:
    all_of_them = tenants()
    a, b = all_of_them.enter(A, FakeBackend()), all_of_them.enter(B, FakeBackend())

    for tenant, name, now in ((a, "1", 0.0), (b, "2", 1.0), (a, "3", 2.0), (b, "4", 3.0)):
        assert list(all_of_them.ended(tenant, name, now)) == []

    assert list(all_of_them.due(10.5)) == [(a, "1")]
    assert all_of_them.next_deadline == 11.0
    assert list(all_of_them.due(12.5)) == [(b, "2"), (a, "3")]
    assert list(all_of_them.due(99.0)) == [(b, "4")]
    assert all_of_them.next_deadline is None


def test_too_many_ends_of_one_principal_push_out_its_own_oldest() -> None:
    """And nobody else's."""
    all_of_them = tenants()
    a, b = all_of_them.enter(A, FakeBackend()), all_of_them.enter(B, FakeBackend())
    list(all_of_them.ended(b, "mine", 0.0))
    list(all_of_them.ended(a, "1", 1.0))
    list(all_of_them.ended(a, "2", 2.0))

    pushed = list(all_of_them.ended(a, "3", 3.0))

    assert pushed == ["1"]
    assert list(all_of_them.due(99.0)) == [(b, "mine"), (a, "2"), (a, "3")]


def test_what_was_pushed_out_leaves_no_deadline_that_harms_the_next() -> None:
    """The time that was noted for it passes, and the others are due at theirs."""
    all_of_them = tenants()
    tenant = all_of_them.enter(A, FakeBackend())
    for number in range(4):
        list(all_of_them.ended(tenant, str(number), float(number)))

    assert all_of_them.next_deadline == 10.0
    assert list(all_of_them.due(11.0)) == []
    assert all_of_them.next_deadline == 12.0
    assert list(all_of_them.due(13.0)) == [(tenant, "2"), (tenant, "3")]


def test_a_deadline_of_a_tenant_that_has_gone_is_nobodys() -> None:
    all_of_them = tenants()
    tenant = all_of_them.enter(A, FakeBackend())
    list(all_of_them.ended(tenant, "p", 0.0))
    all_of_them.leave(tenant)

    assert list(all_of_them.due(99.0)) == []
    assert all_of_them.next_deadline is None
