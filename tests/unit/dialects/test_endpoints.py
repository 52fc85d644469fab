"""The first message decides which dialect a client speaks."""

from __future__ import annotations

import pytest

from holdfast.config import ServerLimits
from holdfast.dialects.app.conversation import AppEndpoint
from holdfast.dialects.endpoints import AUTO, ENDPOINTS, AutoEndpoint, EndpointRow, Services, find_row
from holdfast.dialects.exec.conversation import ExecEndpoint
from holdfast.telemetry import Silent
from tests.fakes.dialects import FakeClient
from tests.fakes.endpoint import ToyEndpoint
from tests.fakes.exec_talk import ExecTalk


class Scene:
    """An endpoint for clients of two others."""

    def __init__(self) -> None:
        self.made: dict[str, ToyEndpoint] = {}
        made = self.made

        class ToyRow(EndpointRow):
            def make(self, services: Services) -> ToyEndpoint:
                made[self.name] = ToyEndpoint()
                return made[self.name]

        table = [ToyRow(row.name, row.module, row.means) for row in ENDPOINTS]
        self.auto = AutoEndpoint(services(), table)

    @property
    def exec(self) -> ToyEndpoint:
        return self.made["exec"]

    @property
    def app(self) -> ToyEndpoint:
        return self.made["app"]


def services() -> Services:
    endpoint = ExecTalk().endpoint
    return Services(endpoint.backend, endpoint.loop, Silent(), ServerLimits())


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


def test_only_endpoints_that_somebody_means_are_made_unless_all_are_loaded() -> None:
    """The app dialects are imported when they are needed."""
    scene = Scene()
    before = set(scene.made)
    scene.auto.greet(FakeClient())

    used = dict(scene.auto.usage())
    scene.auto.load()
    scene.auto.load()

    assert (before, set(scene.made)) == ({"exec"}, {"exec", "app"})
    assert (used, dict(scene.auto.usage())) == ({"toys": 1}, {"toys": 0})
    scene.auto.close()
    assert [made.is_closed for made in scene.made.values()] == [True, True]


def test_the_rows_make_the_endpoints_of_a_server() -> None:
    made = {row.name: type(row.make(services())) for row in ENDPOINTS}

    assert made == {"exec": ExecEndpoint, "app": AppEndpoint}
    assert [row and row.name for row in map(find_row, [*made, AUTO])] == ["exec", "app", None]
