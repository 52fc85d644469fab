"""The exec endpoint: what every client of it gets."""

from __future__ import annotations

from holdfast.config import SessionLimits
from holdfast.dialects.exec.conversation import ExecConversation, ExecEndpoint
from holdfast.dialects.exec.methods import METHODS
from tests.fakes.dialects import FakeBackend, FakeClient, HandLoop


def test_every_client_of_the_endpoint_means_it() -> None:
    endpoint = ExecEndpoint(FakeBackend(), METHODS, loop=HandLoop().loop)

    assert endpoint.pick(b"whatever") is endpoint
    assert endpoint.methods is METHODS
    assert endpoint.limits == SessionLimits()
    assert isinstance(endpoint.greet(FakeClient()), ExecConversation)
