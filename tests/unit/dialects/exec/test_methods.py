"""The table of the exec dialect."""

from __future__ import annotations

import pytest

from holdfast.dialects.exec.methods import METHODS
from tests.fakes.exec_talk import START


@pytest.mark.parametrize(
    ("method", "family"),
    [
        ("initialize", ""),
        ("process/start", "exec"),
        ("process/read", "exec"),
        ("process/write", "exec"),
        ("process/signal", "exec"),
        ("process/terminate", "exec"),
        ("process/list", "exec"),
        ("process/usage", "exec"),
        ("process/wait", "exec"),
        ("process/inspect", "exec"),
        ("process/waitFor", "exec"),
        ("process/ack", "exec"),
        ("process/closeStdin", "exec"),
        ("process/resize", "exec"),
        ("process/snapshot", "exec"),
        ("process/readRange", "exec"),
        ("session/takeOver", ""),
        ("session/close", "session"),
        ("environment/info", "environment info"),
        ("environment/status", "environment status"),
        ("events/subscribe", "events"),
        ("events/unsubscribe", "events"),
        ("fs/readFile", "filesystem"),
        ("fs/close", "filesystem"),
        ("fs/watchMissing", "filesystem"),
        ("http/request", "http"),
        ("environmentConfig/read", "environment config"),
        ("capabilityRoots/discoverV1", "capability discovery"),
        ("capabilities/discoverV2", "capability discovery"),
    ],
)
def test_a_method_belongs_to_a_family(method: str, family: str) -> None:
    """Named to a client that has not done the handshake."""
    assert METHODS[method].family == family


def test_requests_about_a_process_say_about_which() -> None:
    """They wait while it starts; only terminate does not, because it gives the start up."""
    asked = {
        "process/start": START,
        "process/read": {"processId": "p"},
        "process/write": {"processId": "p", "chunk": "", "writeId": "w"},
        "process/wait": {"processId": "p"},
        "process/inspect": {"processId": "p"},
        "process/waitFor": {"processId": "p"},
        "process/ack": {"processId": "p"},
        "process/closeStdin": {"processId": "p"},
        "process/resize": {"processId": "p", "size": {"rows": 1, "cols": 1}},
        "process/signal": {"processId": "p", "signal": "interrupt"},
        "process/snapshot": {"processId": "p"},
        "process/readRange": {"processId": "p"},
        "process/terminate": {"processId": "p"},
    }

    names = {name: METHODS[name].name_of(METHODS[name].decode(params)) for name, params in asked.items()}

    assert names == {**dict.fromkeys(asked, "p"), "process/terminate": None}


def test_whatever_may_take_long_is_counted_or_bounded_by_itself() -> None:
    """A termination is: it must get through when a client waits for many things already."""
    assert sorted(name for name, method in METHODS.items() if method.waits) == [
        "capabilities/discoverV2",
        "capabilityRoots/discoverV1",
        "environmentConfig/read",
        "events/subscribe",
        "fs/archive",
        "fs/canonicalize",
        "fs/close",
        "fs/copy",
        "fs/createDirectory",
        "fs/extract",
        "fs/getMetadata",
        "fs/open",
        "fs/readBlock",
        "fs/readDirectory",
        "fs/readFile",
        "fs/remove",
        "fs/rename",
        "fs/walk",
        "fs/watchMissing",
        "fs/writeBlock",
        "fs/writeFile",
        "http/request",
        "initialize",
        "process/find",
        "process/inspect",
        "process/list",
        "process/read",
        "process/readRange",
        "process/restart",
        "process/snapshot",
        "process/start",
        "process/usage",
        "process/wait",
        "process/waitFor",
        "process/write",
        "session/close",
        "session/takeOver",
    ]


def test_what_changes_the_session_is_alone() -> None:
    """What the client sends next must find the session it means."""
    alone = [name for name, method in METHODS.items() if method.alone]

    assert alone == ["initialize", "session/takeOver", "session/close"]


def test_only_a_start_goes_on_without_its_connection() -> None:
    assert [name for name, method in METHODS.items() if method.starts] == ["process/start", "process/restart"]
