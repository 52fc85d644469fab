"""What a link needs of a connection, and who has it."""

from __future__ import annotations

import pytest

from holdfast.client.channel import Channel, Listener, NoConnection
from holdfast.client.link import Link
from holdfast.client.program import ProgramChannel
from holdfast.client.websocket import WebSocket


def members(protocol: type) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


@pytest.mark.parametrize("kind", [ProgramChannel, WebSocket])
def test_every_channel_has_what_a_link_uses(kind: type) -> None:
    """``heard`` is an attribute of both."""
    assert members(Channel) - {"heard"} <= set(dir(kind))


def test_a_link_listens() -> None:
    assert members(Listener) <= set(dir(Link))


def test_why_there_is_no_connection_is_its_text() -> None:
    assert str(NoConnection("no route")) == "no route"
    assert (NoConnection("x").final, NoConnection("x", final=True).final) == (False, True)
