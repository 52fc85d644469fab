"""The first message decides which dialect a client speaks."""

from __future__ import annotations

import pytest

from holdfast.dialects.auto import AutoEndpoint
from tests.fakes.dialects import FakeClient
from tests.fakes.endpoint import ToyEndpoint


class Scene:
    """An endpoint for both, whose parts are told apart by identity."""

    def __init__(self) -> None:
        self.exec, self.app = ToyEndpoint(), ToyEndpoint()
        self.auto = AutoEndpoint(exec_endpoint=self.exec, app_endpoint=lambda: self.app)


@pytest.mark.parametrize(
    "text",
    [
        b'{"id":1,"method":"initialize","params":{"clientInfo":{"name":"x","version":"1"}}}',
        b'{"id":"a","method":"initialize","params":{"clientInfo":null,"clientName":"x"}}',
        b'{"jsonrpc":"2.0","params":{"a":1,"a":2,"clientInfo":1},"method":"initialize","id":0}',
        b' {"id":1,"method":"initialize","params":{"clientInfo":{}},"trace":null}\n',
    ],
)
def test_whoever_begins_with_client_info_means_the_app_dialects(text: bytes) -> None:
    """Though what it holds may be wrong: the app dialects say so in their own words."""
    scene = Scene()

    assert scene.auto.pick(text) is scene.app


@pytest.mark.parametrize(
    "text",
    [
        b'{"id":1,"method":"initialize","params":{"clientName":"x"}}',
        b'{"id":1,"method":"initialize","params":{"clientinfo":{}}}',
        b'{"id":1,"method":"initialize","params":["clientInfo"]}',
        b'{"id":1,"method":"initialize","params":"clientInfo"}',
        b'{"id":1,"method":"initialize"}',
        b'{"id":1,"method":"process/spawn","params":{"clientInfo":{}}}',
        b'{"method":"initialize","params":{"clientInfo":{}}}',
        b'{"id":1,"result":{"clientInfo":{}}}',
        b'{"id":1.5,"method":"initialize","params":{"clientInfo":{}}}',
        b'{"id":1,"id":1,"method":"initialize","params":{"clientInfo":{}}}',
        b"{",
        b"",
        b"\xff",
    ],
)
def test_everybody_else_means_the_exec_dialect(text: bytes) -> None:
    """Which then answers, also to what is no message."""
    scene = Scene()

    assert scene.auto.pick(text) is scene.exec


def test_who_says_nothing_is_a_client_of_the_exec_dialect() -> None:
    scene = Scene()
    client = FakeClient()

    conversation = scene.auto.greet(client)

    assert scene.auto.methods is scene.exec.methods
    assert scene.exec.conversations == [conversation]
    assert scene.app.conversations == []
