"""``process/start`` on the wire: what is taken, and the words for what is not."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from holdfast.dialects.exec.decoding import decode_start
from holdfast.protocol.paths import PathUri
from holdfast.protocol.start import (
    EnvPolicy,
    InheritMode,
    ManagedNetwork,
    Metadata,
    ResourceLimits,
    StartParams,
    TerminalSize,
)
from tests.fakes.exec_params import FOUND, POLICY, START, complaint


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("sandbox", "WireFileSystemSandboxContext"),
        ("networkProxy", "RemoteNetworkProxyLaunchConfig"),
        ("shellSnapshot", "ShellSnapshotRequest"),
    ],
)
@pytest.mark.parametrize("value", ["1", "true", '"x"'])
def test_what_this_server_does_not_do_is_still_asked_for_in_the_right_form(
    field: str, name: str, value: str
) -> None:
    given = {**START, field: json.loads(value)}

    assert complaint("start", given) == f"invalid type: {FOUND[value]}, expected struct {name}"


@pytest.mark.parametrize("field", POLICY)
def test_every_field_of_an_environment_policy_is_required(field: str) -> None:
    policy = {name: value for name, value in POLICY.items() if name != field}

    assert complaint("start", {**START, "envPolicy": policy}) == f"missing field `{field}`"


ONE_OF = "expected one of `core`, `all`, `none`"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("inherit", 1, "invalid type: number, expected string or map"),
        ("inherit", True, "invalid type: boolean `true`, expected string or map"),
        ("inherit", None, "invalid type: null, expected string or map"),
        ("inherit", ["all"], "invalid type: sequence, expected string or map"),
        ("inherit", "x", f"unknown variant `x`, {ONE_OF}"),
        ("inherit", "", f"unknown variant ``, {ONE_OF}"),
        ("inherit", "All", f"unknown variant `All`, {ONE_OF}"),
        ("ignoreDefaultExcludes", None, "invalid type: null, expected a boolean"),
        ("ignoreDefaultExcludes", 1, "invalid type: number, expected a boolean"),
        ("exclude", {}, "invalid type: map, expected a sequence"),
        ("exclude", [1], "invalid type: number, expected a string"),
        ("exclude", [None], "invalid type: null, expected a string"),
        ("set", [], "invalid type: sequence, expected a map"),
        ("set", {"a": 1}, "invalid type: number, expected a string"),
        ("includeOnly", "x", 'invalid type: string "x", expected a sequence'),
        ("includeOnly", [1], "invalid type: number, expected a string"),
    ],
)
def test_a_misfit_in_an_environment_policy_is_named(field: str, value: Any, words: str) -> None:
    assert complaint("start", {**START, "envPolicy": {**POLICY, field: value}}) == words


UUID_HEX = "invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], found"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"argv": [1]}, "invalid type: number, expected a string"),
        ({"argv": ["a", None]}, "invalid type: null, expected a string"),
        ({"argv": ["a", {}]}, "invalid type: map, expected a string"),
        ({"env": {"A": 1}}, "invalid type: number, expected a string"),
        ({"env": [["A", "b"]]}, "invalid type: sequence, expected a map"),
        ({"cwd": 1}, "invalid type: number, expected a string"),
        ({"cwd": "tmp"}, "invalid URI: relative URL without a base"),
        ({"cwd": "file:///tmp?x"}, "query parameters are not allowed in path URIs"),
        ({"envPolicy": 1}, "invalid type: number, expected struct ExecEnvPolicy"),
        ({"metadata": {"threadId": 1}}, "invalid type: number, expected a string"),
        ({"metadata": {"threadId": ""}}, "invalid length: expected length 32 for simple format, found 0"),
        ({"metadata": {"threadId": "x"}}, f"{UUID_HEX} `x` at 1"),
        ({"metadata": {"threadId": "zf0c0000-0000-4000-8000-000000000000"}}, f"{UUID_HEX} `z` at 1"),
        (
            {"metadata": {"threadId": "5f0c0000-0000-4000-8000-00000000000"}},
            "invalid group length in group 4: expected 12, found 11",
        ),
        ({"metadata": {"threadId": "5f-0c"}}, "invalid group count: expected 5, found 2"),
        ({"metadata": {"toolCallId": True}}, "invalid type: boolean `true`, expected a string"),
        ({"managedNetwork": {"loopbackPorts": 1}}, "invalid type: number, expected a sequence"),
        ({"managedNetwork": {"loopbackPorts": None}}, "invalid type: null, expected a sequence"),
        ({"managedNetwork": {"loopbackPorts": [-1]}}, "invalid number"),
        ({"managedNetwork": {"loopbackPorts": [65_536]}}, "invalid number"),
        ({"managedNetwork": {"loopbackPorts": [1.5]}}, "invalid number"),
        ({"managedNetwork": {"loopbackPorts": ["1"]}}, 'invalid type: string "1", expected u16'),
        ({"managedNetwork": {"allowLocalBinding": None}}, "invalid type: null, expected a boolean"),
    ],
)
def test_a_misfit_deep_in_a_start_is_named(value: dict[str, Any], words: str) -> None:
    assert complaint("start", {**START, **value}) == words


def test_a_start_is_read_with_its_directory() -> None:
    full = {
        **START,
        "envPolicy": {**POLICY, "set": {"A": "1"}, "exclude": ["B*"]},
        "pipeStdin": True,
        "arg0": "name",
        "metadata": {"threadId": "5f0c0000000040008000000000000000", "toolCallId": "t"},
        "managedNetwork": {"loopbackPorts": [1, 65_535], "allowLocalBinding": True},
    }

    start = decode_start(full)

    assert start.cwd == PathUri("file:///tmp", "/tmp")
    assert start.params == StartParams(
        process_id="p",
        argv=["x"],
        cwd="file:///tmp",
        env={},
        tty=False,
        metadata=Metadata("5f0c0000000040008000000000000000", "t"),
        env_policy=EnvPolicy(InheritMode.ALL, True, ["B*"], {"A": "1"}, []),
        pipe_stdin=True,
        arg0="name",
        managed_network=ManagedNetwork([1, 65_535], True),
    )


def test_a_start_is_read_with_all_its_extensions() -> None:
    extended = {
        "size": {"rows": 1, "cols": 2},
        "timeoutMs": 3,
        "idleTimeoutMs": 4,
        "graceMs": 5,
        "drainMs": 6,
        "retainBytes": 7,
        "outputBytesLimit": 8,
        "truncateOutput": True,
        "limits": {"memoryBytes": 9, "cpuSeconds": 10, "processes": 11, "openFiles": 12},
        "idempotent": True,
        "window": 4096,
        "keep": True,
        "user": "1000:1000",
    }

    assert decode_start({**START, **extended}).params == StartParams(
        process_id="p",
        argv=["x"],
        cwd="file:///tmp",
        env={},
        tty=False,
        size=TerminalSize(1, 2),
        timeout_ms=3,
        idle_timeout_ms=4,
        grace_ms=5,
        drain_ms=6,
        retain_bytes=7,
        output_bytes_limit=8,
        truncate_output=True,
        limits=ResourceLimits(9, 10, 11, 12),
        idempotent=True,
        window=4096,
        keep=True,
        user="1000:1000",
    )


def test_the_extensions_may_be_absent_or_null() -> None:
    """Clients of the reference know none of them."""
    names = ["size", "timeoutMs", "idleTimeoutMs", "graceMs", "drainMs", "retainBytes", "outputBytesLimit"]

    nulls = decode_start({**START, **dict.fromkeys([*names, "limits"])})

    assert nulls == decode_start(START)


def test_limits_are_told_by_their_names_on_the_wire() -> None:
    assert ResourceLimits(memory_bytes=0, open_files=2).values() == {"memoryBytes": 0, "openFiles": 2}
    assert ResourceLimits().values() == {}


def test_what_is_not_asked_for_is_left_out_of_a_request() -> None:
    """Servers of others do not know our extensions, and older ones not all of the protocol."""
    params = StartParams("p", ["x"], "file:///", {}, tty=False)

    assert json.loads(msgspec.json.encode(params)) == {
        "processId": "p",
        "argv": ["x"],
        "cwd": "file:///",
        "env": {},
        "tty": False,
    }
