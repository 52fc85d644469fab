"""The shapes of the app dialects: what is taken, and the words of the reference for what is not."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from holdfast.protocol.app import (
    AppInitializeParams,
    AppInitializeResult,
    AppProcessExited,
    CommandDelta,
    CommandResizeParams,
    CommandTerminateParams,
    CommandWriteParams,
    DangerFullAccess,
    ExecParams,
    ExecResult,
    ExternalSandbox,
    ProcessDelta,
    ProcessKillParams,
    ProcessResizeParams,
    ProcessWriteParams,
    ReadOnly,
    SpawnParams,
    WorkspaceWrite,
    decode_params,
)
from holdfast.protocol.sandbox import NetworkAccess
from holdfast.protocol.shapes import Shape, Undecodable

INFO = {"name": "o", "version": "1"}
INITIALIZE = {"clientInfo": INFO}
SIZE = {"rows": 1, "cols": 1}
SPAWN = {"command": ["x"], "processHandle": "h", "cwd": "/tmp"}
EXEC = {"command": ["x"]}

SHAPES: dict[str, tuple[type[Shape], str, dict[str, Any]]] = {
    "initialize": (AppInitializeParams, "InitializeParams", INITIALIZE),
    "spawn": (SpawnParams, "ProcessSpawnParams", SPAWN),
    "writeStdin": (ProcessWriteParams, "ProcessWriteStdinParams", {"processHandle": "h"}),
    "resizePty": (ProcessResizeParams, "ProcessResizePtyParams", {"processHandle": "h", "size": SIZE}),
    "kill": (ProcessKillParams, "ProcessKillParams", {"processHandle": "h"}),
    "exec": (ExecParams, "CommandExecParams", EXEC),
    "write": (CommandWriteParams, "CommandExecWriteParams", {"processId": "c"}),
    "resize": (CommandResizeParams, "CommandExecResizeParams", {"processId": "c", "size": SIZE}),
    "terminate": (CommandTerminateParams, "CommandExecTerminateParams", {"processId": "c"}),
}


def complaint(shape: str, value: Any) -> str:
    with pytest.raises(Undecodable) as caught:
        decode_params(value, SHAPES[shape][0])
    return str(caught.value)


def nested(good: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """``good`` with a value at a path such as ``clientInfo.name``."""
    name, _, rest = path.partition(".")
    return {**good, name: nested(good.get(name) or {}, rest, value) if rest else value}


# What any field says about a value of a wrong type.
FOUND = {
    "1": "integer `1`",
    "-1": "integer `-1`",
    "1.5": "floating point `1.5`",
    "1.0": "floating point `1.0`",
    "1e16": "floating point `1e+16`",
    "true": "boolean `true`",
    "false": "boolean `false`",
    "null": "null",
    '"x"': 'string "x"',
    '"a\\nb"': 'string "a\\nb"',
    "[]": "sequence",
    "{}": "map",
}
STRINGS = ['"x"', '"a\\nb"']
BOOLEANS = ["true", "false"]

# Shape, field, what it expects, and which of the values above it takes.
FIELDS = [
    ("initialize", "clientInfo", "struct ClientInfo", ["{}"]),
    ("initialize", "clientInfo.name", "a string", STRINGS),
    ("initialize", "clientInfo.version", "a string", STRINGS),
    ("initialize", "clientInfo.title", "a string", [*STRINGS, "null"]),
    ("initialize", "capabilities", "struct InitializeCapabilities", ["{}", "null"]),
    ("initialize", "capabilities.experimentalApi", "a boolean", BOOLEANS),
    ("initialize", "capabilities.optOutNotificationMethods", "a sequence", ["[]", "null"]),
    ("spawn", "command", "a sequence", ["[]"]),
    ("spawn", "processHandle", "a string", STRINGS),
    ("spawn", "cwd", "path string", STRINGS),
    *[("spawn", name, "a boolean", BOOLEANS) for name in ("tty", "streamStdin", "streamStdoutStderr")],
    ("spawn", "outputBytesCap", "usize", ["1", "-1", "null"]),
    ("spawn", "timeoutMs", "i64", ["1", "-1", "null"]),
    ("spawn", "env", "a map", ["{}", "null"]),
    ("spawn", "size", "struct ProcessTerminalSize", ["{}", "null"]),
    ("writeStdin", "processHandle", "a string", STRINGS),
    ("writeStdin", "deltaBase64", "a string", [*STRINGS, "null"]),
    ("writeStdin", "closeStdin", "a boolean", BOOLEANS),
    ("resizePty", "processHandle", "a string", STRINGS),
    ("resizePty", "size", "struct ProcessTerminalSize", ["{}"]),
    ("resizePty", "size.rows", "u16", ["1", "-1"]),
    ("resizePty", "size.cols", "u16", ["1", "-1"]),
    ("kill", "processHandle", "a string", STRINGS),
    ("exec", "command", "a sequence", ["[]"]),
    ("exec", "processId", "a string", [*STRINGS, "null"]),
    *[("exec", name, "a boolean", BOOLEANS) for name in ("tty", "streamStdin", "streamStdoutStderr")],
    *[("exec", name, "a boolean", BOOLEANS) for name in ("disableOutputCap", "disableTimeout")],
    ("exec", "outputBytesCap", "usize", ["1", "-1", "null"]),
    ("exec", "timeoutMs", "i64", ["1", "-1", "null"]),
    ("exec", "cwd", "path string", [*STRINGS, "null"]),
    ("exec", "env", "a map", ["{}", "null"]),
    ("exec", "size", "struct CommandExecTerminalSize", ["{}", "null"]),
    ("exec", "permissionProfile", "a string", [*STRINGS, "null"]),
    ("write", "processId", "a string", STRINGS),
    ("write", "deltaBase64", "a string", [*STRINGS, "null"]),
    ("write", "closeStdin", "a boolean", BOOLEANS),
    ("resize", "processId", "a string", STRINGS),
    ("resize", "size", "struct CommandExecTerminalSize", ["{}"]),
    ("terminate", "processId", "a string", STRINGS),
]


@pytest.mark.parametrize(
    ("shape", "field", "expected", "value"),
    [
        (shape, field, expected, value)
        for shape, field, expected, taken in FIELDS
        for value in FOUND
        if value not in taken
    ],
)
def test_a_value_of_a_wrong_type_is_named_with_what_was_expected(
    shape: str, field: str, expected: str, value: str
) -> None:
    given = nested(SHAPES[shape][2], field, json.loads(value))

    assert complaint(shape, given) == f"invalid type: {FOUND[value]}, expected {expected}"


@pytest.mark.parametrize(
    ("shape", "field", "value"),
    [
        (shape, field, value)
        for shape, field, _, taken in FIELDS
        for value in taken
        if value not in ("{}", "-1") and (shape, field) != ("spawn", "cwd")
    ],
)
def test_a_value_of_the_right_type_is_taken(shape: str, field: str, value: str) -> None:
    """Members that nobody knows are passed over."""
    kind, _, good = SHAPES[shape]

    decode_params({**nested(good, field, json.loads(value)), "unknown": {"x": [1]}}, kind)


@pytest.mark.parametrize("shape", SHAPES)
def test_params_are_a_struct_by_name(shape: str) -> None:
    """The order of members in an array is nothing to rely on."""
    for value in ("1", "1.5", "true", '"x"', "[]"):
        words = f"invalid type: {FOUND[value]}, expected struct {SHAPES[shape][1]}"
        assert complaint(shape, json.loads(value)) == words
    assert complaint(shape, None) == "missing field `params`"


@pytest.mark.parametrize(
    ("shape", "value", "field"),
    [
        ("initialize", {}, "clientInfo"),
        ("initialize", {"clientInfo": {}}, "name"),
        ("initialize", {"clientInfo": {"name": "o"}}, "version"),
        ("initialize", {"clientInfo": {"version": "1"}}, "name"),
        ("spawn", {}, "command"),
        ("spawn", {"cwd": "/tmp"}, "command"),
        ("spawn", {"command": ["x"]}, "processHandle"),
        ("spawn", {"command": ["x"], "processHandle": "h"}, "cwd"),
        ("spawn", {**SPAWN, "size": {}}, "rows"),
        ("spawn", {**SPAWN, "size": {"rows": 1}}, "cols"),
        ("writeStdin", {}, "processHandle"),
        ("writeStdin", {"process_handle": "h"}, "processHandle"),
        ("resizePty", {}, "processHandle"),
        ("resizePty", {"processHandle": "h"}, "size"),
        ("kill", {}, "processHandle"),
        ("exec", {}, "command"),
        ("exec", {**EXEC, "size": {"cols": 1}}, "rows"),
        ("exec", {**EXEC, "sandboxPolicy": {}}, "type"),
        ("write", {}, "processId"),
        ("resize", {"processId": "c"}, "size"),
        ("terminate", {}, "processId"),
    ],
)
def test_the_first_missing_field_is_named(shape: str, value: dict[str, Any], field: str) -> None:
    assert complaint(shape, value) == f"missing field `{field}`"


RELATIVE = "AbsolutePathBuf deserialized without a base path"


@pytest.mark.parametrize(
    ("shape", "text", "words"),
    [
        (
            "initialize",
            '{"clientInfo":{"version":1,"name":2}}',
            "invalid type: integer `1`, expected a string",
        ),
        ("initialize", '{"capabilities":1}', "integer `1`, expected struct InitializeCapabilities"),
        ("spawn", '{"tty":1,"command":1}', "invalid type: integer `1`, expected a boolean"),
        ("spawn", '{"command":1,"tty":1}', "invalid type: integer `1`, expected a sequence"),
        ("spawn", '{"cwd":"x","tty":1}', RELATIVE),
        ("spawn", '{"tty":1,"cwd":"x"}', "invalid type: integer `1`, expected a boolean"),
        ("spawn", '{"outputBytesCap":-1,"tty":1}', "invalid value: integer `-1`, expected usize"),
        ("spawn", '{"zz":1,"env":{"A":1}}', "invalid type: integer `1`, expected a string"),
    ],
)
def test_the_first_misfit_of_the_text_wins_over_what_is_missing(shape: str, text: str, words: str) -> None:
    """A path that is none counts as a misfit of its member."""
    assert complaint(shape, json.loads(text)).endswith(words)


@pytest.mark.parametrize(
    ("shape", "value", "words"),
    [
        ("spawn", {"command": ["a", 1]}, "invalid type: integer `1`, expected a string"),
        ("spawn", {"command": [None]}, "invalid type: null, expected a string"),
        ("spawn", {"env": {"A": 1}}, "invalid type: integer `1`, expected a string"),
        ("spawn", {"env": {"A": []}}, "invalid type: sequence, expected a string"),
        ("spawn", {"env": [["A", "b"]]}, "invalid type: sequence, expected a map"),
        ("spawn", {"outputBytesCap": -1}, "invalid value: integer `-1`, expected usize"),
        ("spawn", {"timeoutMs": 2**63}, "invalid value: integer `9223372036854775808`, expected i64"),
        (
            "exec",
            {"timeoutMs": -(2**63) - 1},
            "invalid value: integer `-9223372036854775809`, expected i64",
        ),
        ("spawn", {"size": {"rows": -1, "cols": 1}}, "invalid value: integer `-1`, expected u16"),
        ("exec", {"size": {"rows": 1, "cols": 70_000}}, "invalid value: integer `70000`, expected u16"),
        ("resizePty", {"size": {"rows": 65_536, "cols": 1}}, "invalid value: integer `65536`, expected u16"),
        ("exec", {"command": "x"}, 'invalid type: string "x", expected a sequence'),
    ],
)
def test_a_misfit_inside_a_member_is_named(shape: str, value: dict[str, Any], words: str) -> None:
    assert complaint(shape, {**SHAPES[shape][2], **value}) == words


@pytest.mark.parametrize("cwd", ["", "rel", "./x", "~", "~/x", "~root", "file:///tmp", "C:\\x", "\n/x"])
def test_a_process_needs_an_absolute_directory(cwd: str) -> None:
    assert complaint("spawn", {**SPAWN, "cwd": cwd}) == RELATIVE


@pytest.mark.parametrize("cwd", ["/", "/tmp/../tmp", "/tmp/", "//tmp", "/a\nb", "/é\0"])
def test_an_absolute_directory_is_taken_as_it_is(cwd: str) -> None:
    assert decode_params({**SPAWN, "cwd": cwd}, SpawnParams).cwd == cwd


# Policies.

UNION = "internally tagged enum SandboxPolicyDeserialize"
TYPES = "expected one of `dangerFullAccess`, `readOnly`, `externalSandbox`, `workspaceWrite`"
EXTERNAL = {"type": "externalSandbox"}
WRITE = {"type": "workspaceWrite"}


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (1, f"invalid type: integer `1`, expected {UNION}"),
        ("x", f'invalid type: string "x", expected {UNION}'),
        (True, f"invalid type: boolean `true`, expected {UNION}"),
        ({"type": None}, "invalid type: null, expected variant identifier"),
        ({"type": True}, "invalid type: boolean `true`, expected variant identifier"),
        ({"type": {}}, "invalid type: map, expected variant identifier"),
        ({"type": "x"}, f"unknown variant `x`, {TYPES}"),
        ({"type": ""}, f"unknown variant ``, {TYPES}"),
        ({"type": "readOnly", "networkAccess": None}, "invalid type: null, expected a boolean"),
        ({"networkAccess": 1, "type": "readOnly"}, "invalid type: integer `1`, expected a boolean"),
        ({**EXTERNAL, "networkAccess": "x"}, "unknown variant `x`, expected `restricted` or `enabled`"),
        ({**EXTERNAL, "networkAccess": True}, "invalid type: boolean `true`, expected string or map"),
        ({**EXTERNAL, "networkAccess": None}, "invalid type: null, expected string or map"),
        ({**EXTERNAL, "networkAccess": 1}, "invalid type: integer `1`, expected string or map"),
        ({**WRITE, "writableRoots": None}, "invalid type: null, expected a sequence"),
        ({**WRITE, "writableRoots": ["/a", "rel"]}, RELATIVE),
        ({**WRITE, "writableRoots": [1]}, "invalid type: integer `1`, expected path string"),
        ({**WRITE, "networkAccess": 1}, "invalid type: integer `1`, expected a boolean"),
        ({**WRITE, "excludeSlashTmp": None}, "invalid type: null, expected a boolean"),
        ({**WRITE, "excludeTmpdirEnvVar": "x"}, 'invalid type: string "x", expected a boolean'),
    ],
)
def test_a_misfit_of_a_policy_is_named(policy: Any, words: str) -> None:
    assert complaint("exec", {**EXEC, "sandboxPolicy": policy}) == words


@pytest.mark.parametrize(
    ("policy", "read"),
    [
        (None, None),
        ({"type": "dangerFullAccess", "x": 1}, DangerFullAccess()),
        ({"type": "readOnly"}, ReadOnly(network_access=False)),
        ({"networkAccess": True, "type": "readOnly"}, ReadOnly(network_access=True)),
        (EXTERNAL, ExternalSandbox(NetworkAccess.RESTRICTED)),
        ({**EXTERNAL, "networkAccess": "enabled"}, ExternalSandbox(NetworkAccess.ENABLED)),
        (WRITE, WorkspaceWrite([], False, False, False)),
        (
            {**WRITE, "writableRoots": ["/a"], "excludeSlashTmp": True},
            WorkspaceWrite(["/a"], exclude_slash_tmp=True),
        ),
    ],
)
def test_a_policy_is_read_by_its_type(policy: Any, read: object) -> None:
    assert decode_params({**EXEC, "sandboxPolicy": policy}, ExecParams).sandbox_policy == read


# What comes out.


def test_a_process_without_wishes_is_told_apart_from_one_that_wants_no_bounds() -> None:
    plain = decode_params(SPAWN, SpawnParams)
    unbounded = decode_params({**SPAWN, "outputBytesCap": None, "timeoutMs": None}, SpawnParams)

    assert (plain.output_bytes_cap, plain.timeout_ms) == (UNSET, UNSET)
    assert (unbounded.output_bytes_cap, unbounded.timeout_ms) == (None, None)


@pytest.mark.parametrize(("field", "most"), [("outputBytesCap", 2**64 - 1), ("timeoutMs", 2**63 - 1)])
def test_the_largest_numbers_are_taken(field: str, most: int) -> None:
    for shape in ("spawn", "exec"):
        kind, _, good = SHAPES[shape]
        assert most in msgspec.structs.astuple(decode_params({**good, field: most}, kind))


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (
            AppProcessExited("h", 3, False, "out", True, "é", False),
            '{"processHandle":"h","exitCode":3,"outputDrainTimedOut":false,"stdout":"out",'
            '"stdoutCapReached":true,"stderr":"é","stderrCapReached":false}',
        ),
        (
            ProcessDelta("h", "stdout", "YQ==", False),
            '{"processHandle":"h","stream":"stdout","deltaBase64":"YQ==","capReached":false}',
        ),
        (
            CommandDelta("c", "stderr", "", True),
            '{"processId":"c","stream":"stderr","deltaBase64":"","capReached":true}',
        ),
        (ExecResult(0, "a", "b"), '{"exitCode":0,"stdout":"a","stderr":"b"}'),
        (
            ExecResult(0, "a", "b", True, True),
            '{"exitCode":0,"stdout":"a","stderr":"b","stdoutCapReached":true,"stderrCapReached":true}',
        ),
        (
            AppInitializeResult("agent", "/home"),
            '{"userAgent":"agent","codexHome":"/home","platformFamily":"unix","platformOs":"linux"}',
        ),
    ],
)
def test_an_answer_is_written_as_the_reference_does(shape: Shape, text: str) -> None:
    assert msgspec.json.encode(shape).decode() == text
