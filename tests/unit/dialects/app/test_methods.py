"""The table of methods: which there are, what they wait for, and what they are about."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.dialects.app.methods import METHODS
from holdfast.protocol.app import (
    AppInitializeParams,
    CommandResizeParams,
    CommandTerminateParams,
    CommandWriteParams,
    ExecParams,
    ProcessKillParams,
    ProcessResizeParams,
    ProcessWriteParams,
    SpawnParams,
)
from tests.fakes.app_talk import CLIENT, AppTalk

SIZE = {"rows": 1, "cols": 1}
EXAMPLES: dict[str, tuple[Any, type, str | None]] = {
    "initialize": ({"clientInfo": CLIENT}, AppInitializeParams, None),
    "process/spawn": (
        {"command": ["x"], "processHandle": "h", "cwd": "/"},
        SpawnParams,
        "process h",
    ),
    "process/writeStdin": ({"processHandle": "h"}, ProcessWriteParams, "process h"),
    "process/resizePty": ({"processHandle": "h", "size": SIZE}, ProcessResizeParams, "process h"),
    "process/kill": ({"processHandle": ""}, ProcessKillParams, "process "),
    "command/exec": ({"command": ["x"], "processId": "h"}, ExecParams, "command/exec h"),
    "command/exec/write": ({"processId": "h"}, CommandWriteParams, "command/exec h"),
    "command/exec/resize": ({"processId": "h", "size": SIZE}, CommandResizeParams, "command/exec h"),
    "command/exec/terminate": ({"processId": "h"}, CommandTerminateParams, "command/exec h"),
}


def test_the_table_is_complete() -> None:
    """In the order in which an error lists them."""
    assert list(METHODS) == list(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_method_reads_its_own_params(name: str) -> None:
    params, kind, _ = EXAMPLES[name]

    assert type(METHODS[name].decode(params)) is kind


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_request_waits_for_the_start_of_the_process_it_is_about(name: str) -> None:
    """Names of the two families are apart, also while their processes start."""
    params, _, about = EXAMPLES[name]
    method = METHODS[name]

    assert method.name_of(method.decode(params)) == about


def test_a_command_without_a_name_is_waited_for_by_nobody() -> None:
    method = METHODS["command/exec"]

    assert method.name_of(method.decode({"command": ["x"]})) is None


def test_only_starts_start_and_only_what_may_be_answered_later_is_counted_as_waiting() -> None:
    assert [name for name, method in METHODS.items() if method.starts] == ["process/spawn", "command/exec"]
    assert [name for name, method in METHODS.items() if method.waits] == [
        "process/spawn",
        "process/writeStdin",
        "command/exec",
        "command/exec/write",
    ]
    assert not any(method.alone for method in METHODS.values())


def test_every_method_but_the_handshake_goes_by_its_own_name_in_error_texts() -> None:
    assert {name: method.family for name, method in METHODS.items()} == {
        **{name: name for name in METHODS},
        "initialize": "",
    }


async def test_the_handshake_is_one_of_the_methods() -> None:
    scene = AppTalk()

    result = await scene.call("initialize", {"clientInfo": CLIENT})

    assert list(result) == ["userAgent", "codexHome", "platformFamily", "platformOs"]
