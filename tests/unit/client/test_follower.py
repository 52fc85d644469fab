"""Whoever has processes on a server is told everything that a link tells."""

from __future__ import annotations

from holdfast.client.follower import Follower
from holdfast.client.remote import RemoteBackend
from tests.fakes.remote import Notes


def test_everybody_who_follows_has_what_a_link_tells() -> None:
    told = {name for name in vars(Follower) if not name.startswith("_")}

    assert told <= set(dir(RemoteBackend))
    assert told <= set(dir(Notes))
