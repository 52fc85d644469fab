"""The shapes of the exec dialect: what is taken, and the words for what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.dialects.exec import messages as m
from holdfast.dialects.paths import PathUri
from holdfast.errors import BadRequest
from tests.fakes.exec_params import (
    FOUND,
    POLICY,
    READ,
    RESIZE,
    SHAPES,
    SIGNAL,
    START,
    TAKE_OVER,
    WRITE,
    complaint,
)

THREAD = '{"threadId":"5f0c0000-0000-4000-8000-000000000000"}'

# Shape, a good value, field, what it expects, and which JSON values it takes.
FIELDS = [
    ("initialize", {"clientName": "o"}, "clientName", "a string", ['"x"']),
    ("initialize", {"clientName": "o"}, "resumeSessionId", "a string", ['"x"', "null"]),
    ("start", START, "processId", "a string", ['"x"']),
    ("start", START, "argv", "a sequence", ["[]"]),
    ("start", START, "env", "a map", ["{}"]),
    ("start", START, "tty", "a boolean", ["true", "false"]),
    ("start", START, "pipeStdin", "a boolean", ["true", "false"]),
    ("start", START, "arg0", "a string", ['"x"', "null"]),
    ("start", START, "enforceManagedNetwork", "a boolean", ["true", "false"]),
    ("start", START, "metadata", "struct ExecMetadata", ["null", "{}", THREAD]),
    ("start", START, "managedNetwork", "struct ManagedNetworkSandboxContext", ["null", "{}"]),
    ("read", READ, "processId", "a string", ['"x"']),
    ("write", WRITE, "processId", "a string", ['"x"']),
    ("write", WRITE, "writeId", "a string", ['"x"', "null"]),
    ("signal", SIGNAL, "processId", "a string", ['"x"']),
    ("terminate", READ, "processId", "a string", ['"x"']),
    ("start", START, "idempotent", "a boolean", ["true", "false"]),
    ("start", START, "keep", "a boolean", ["true", "false"]),
    ("start", START, "limits", "struct ResourceLimits", ["null", "{}"]),
    ("signal", SIGNAL, "tree", "a boolean", ["true", "false", "null"]),
    ("wait", READ, "processId", "a string", ['"x"']),
    ("closeStdin", READ, "processId", "a string", ['"x"']),
    ("closeStdin", READ, "writeId", "a string", ['"x"', "null"]),
    ("resize", RESIZE, "processId", "a string", ['"x"']),
    ("takeOver", TAKE_OVER, "sessionId", "a string", ['"x"']),
    ("takeOver", TAKE_OVER, "clientName", "a string", ['"x"']),
]


@pytest.mark.parametrize(
    ("shape", "good", "field", "expected", "value"),
    [
        (shape, good, field, expected, value)
        for shape, good, field, expected, taken in FIELDS
        for value in FOUND
        if value not in taken
    ],
)
def test_a_value_of_a_wrong_type_is_named_with_what_was_expected(
    shape: str, good: dict[str, Any], field: str, expected: str, value: str
) -> None:
    given = {**good, field: json.loads(value)}

    assert complaint(shape, given) == f"invalid type: {FOUND[value]}, expected {expected}"


@pytest.mark.parametrize(
    ("shape", "good", "field", "value"),
    [(shape, good, field, value) for shape, good, field, _, taken in FIELDS for value in taken],
)
def test_a_value_of_the_right_type_is_taken(shape: str, good: dict[str, Any], field: str, value: str) -> None:
    SHAPES[shape][1]({**good, field: json.loads(value), "unknown": {"x": [1]}})


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


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("value", ["null", "1", "true", '"x"', "[]"])
def test_params_are_a_struct_by_name(shape: str, value: str) -> None:
    """Absent params count as null.  The order of members in an array is nothing to rely on."""
    words = f"invalid type: {FOUND[value]}, expected struct {SHAPES[shape][0]}"

    assert complaint(shape, json.loads(value)) == words


@pytest.mark.parametrize(
    ("shape", "value", "field"),
    [
        ("initialize", {}, "clientName"),
        ("initialize", {"client_name": "o"}, "clientName"),
        ("start", {}, "processId"),
        ("start", {"process_id": "q"}, "processId"),
        ("start", {"processId": "a"}, "argv"),
        ("start", {"tty": False}, "processId"),
        ("start", {"processId": "a", "argv": ["x"]}, "cwd"),
        ("start", {"processId": "a", "argv": ["x"], "tty": False}, "cwd"),
        ("start", {"argv": ["x"], "env": {}}, "processId"),
        ("start", {"cwd": "file://h/x"}, "processId"),
        ("start", {k: v for k, v in START.items() if k != "env"}, "env"),
        ("start", {k: v for k, v in START.items() if k != "tty"}, "tty"),
        ("start", {**START, "envPolicy": {}}, "inherit"),
        ("read", {}, "processId"),
        ("write", {}, "processId"),
        ("write", {"processId": "p"}, "chunk"),
        ("signal", {}, "processId"),
        ("signal", {"processId": "p"}, "signal"),
        ("terminate", {}, "processId"),
        ("start", {**START, "size": {}}, "rows"),
        ("start", {**START, "size": {"rows": 1}}, "cols"),
        ("wait", {}, "processId"),
        ("closeStdin", {}, "processId"),
        ("resize", {}, "processId"),
        ("resize", {"processId": "p"}, "size"),
        ("resize", {"processId": "p", "size": {"cols": 1}}, "rows"),
        ("takeOver", {}, "sessionId"),
        ("takeOver", {"session_id": "s"}, "sessionId"),
    ],
)
def test_the_first_missing_field_is_named(shape: str, value: dict[str, Any], field: str) -> None:
    assert complaint(shape, value) == f"missing field `{field}`"


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


@pytest.mark.parametrize(
    ("shape", "text", "words"),
    [
        ("start", '{"tty":1,"processId":1}', "invalid type: number, expected a boolean"),
        ("start", '{"processId":1,"tty":1}', "invalid type: number, expected a string"),
        ("start", '{"env":1,"argv":1}', "invalid type: number, expected a map"),
        ("start", '{"argv":1,"env":1}', "invalid type: number, expected a sequence"),
        ("start", '{"zz":1,"tty":1}', "invalid type: number, expected a boolean"),
        ("start", '{"cwd":"x"}', "invalid URI: relative URL without a base"),
        ("start", '{"tty":1,"cwd":"x"}', "invalid type: number, expected a boolean"),
        ("start", '{"env":{"A":1},"tty":1}', "invalid type: number, expected a string"),
        ("write", '{"writeId":1,"chunk":"!!"}', "invalid type: number, expected a string"),
        ("write", '{"chunk":"!!","writeId":1}', "Invalid symbol 33, offset 0."),
        ("write", '{"processId":"zz","chunk":"!!","writeId":""}', "Invalid symbol 33, offset 0."),
    ],
)
def test_the_first_misfit_of_the_text_wins_over_what_is_missing(shape: str, text: str, words: str) -> None:
    """A path that is none and a base64 that is none count as misfits of their members."""
    assert complaint(shape, json.loads(text)) == words


@pytest.mark.parametrize("value", ["1", "true", "false", '"x"', "[]", "[1]"])
def test_a_method_without_params_takes_none(value: str) -> None:
    found = "sequence" if value == "[1]" else FOUND[value]

    with pytest.raises(BadRequest) as caught:
        m.decode_unit(json.loads(value))

    assert str(caught.value) == f"invalid type: {found}, expected unit"


def test_no_params_may_be_written_in_three_ways() -> None:
    m.decode_unit(None)
    m.decode_unit({})
    with pytest.raises(BadRequest, match=r"^invalid type: map, expected unit$"):
        m.decode_unit({"a": 1})


# What comes out.


def test_a_start_is_read_with_its_directory() -> None:
    full = {
        **START,
        "envPolicy": {**POLICY, "set": {"A": "1"}, "exclude": ["B*"]},
        "pipeStdin": True,
        "arg0": "name",
        "metadata": {"threadId": "5f0c0000000040008000000000000000", "toolCallId": "t"},
        "managedNetwork": {"loopbackPorts": [1, 65_535], "allowLocalBinding": True},
    }

    start = m.decode_start(full)

    assert start.cwd == PathUri("file:///tmp", "/tmp")
    assert start.params == m.StartParams(
        process_id="p",
        argv=["x"],
        cwd="file:///tmp",
        env={},
        tty=False,
        metadata=m.Metadata("5f0c0000000040008000000000000000", "t"),
        env_policy=m.EnvPolicy(m.InheritMode.ALL, True, ["B*"], {"A": "1"}, []),
        pipe_stdin=True,
        arg0="name",
        managed_network=m.ManagedNetwork([1, 65_535], True),
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
        "limits": {"memoryBytes": 9, "cpuSeconds": 10, "processes": 11, "openFiles": 12},
        "idempotent": True,
        "window": 4096,
        "keep": True,
    }

    assert m.decode_start({**START, **extended}).params == m.StartParams(
        process_id="p",
        argv=["x"],
        cwd="file:///tmp",
        env={},
        tty=False,
        size=m.TerminalSize(1, 2),
        timeout_ms=3,
        idle_timeout_ms=4,
        grace_ms=5,
        drain_ms=6,
        retain_bytes=7,
        output_bytes_limit=8,
        limits=m.ResourceLimits(9, 10, 11, 12),
        idempotent=True,
        window=4096,
        keep=True,
    )


def test_the_extensions_may_be_absent_or_null() -> None:
    """Clients of the reference know none of them."""
    names = ["size", "timeoutMs", "idleTimeoutMs", "graceMs", "drainMs", "retainBytes", "outputBytesLimit"]

    nulls = m.decode_start({**START, **dict.fromkeys([*names, "limits"])})

    assert nulls == m.decode_start(START)


def test_limits_are_told_by_their_names_on_the_wire() -> None:
    assert m.ResourceLimits(memory_bytes=0, open_files=2).values() == {"memoryBytes": 0, "openFiles": 2}
    assert m.ResourceLimits().values() == {}


def test_a_write_is_read_with_its_bytes() -> None:
    assert m.decode_write(WRITE) == m.Write("p", b"a", "w")
