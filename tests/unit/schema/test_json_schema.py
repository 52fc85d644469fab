"""JSON Schema: what it takes is what the decoders take, and what the server sends fits it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from holdfast.cli.schema import CATALOGS
from holdfast.dialects.app.methods import METHODS as APP
from holdfast.dialects.exec.methods import METHODS as EXEC
from holdfast.errors import BadRequest
from holdfast.schema.json_schema import write
from holdfast.schema.outline import Outline
from tests.fakes.catalog import CATALOG

METHODS = {"exec": EXEC, "app": APP}


@cache
def endpoint(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(write([CATALOGS[name]]))
    return document


def takes(schema: Any, message: Any) -> bool:
    return bool(Draft202012Validator(schema).is_valid(message))


def test_a_type_is_written_with_bounds_defaults_and_words() -> None:
    """Whatever a generator of clients needs to know is in one place."""
    types = json.loads(write([CATALOG]))["$defs"]

    assert types["DrawParams"] == {
        "title": "DrawParams",
        "description": "What to draw. And more than a summary needs.",
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Either `a|b` or */ whatever."},
            "path": {"type": "string", "pattern": "^/"},
            "form": {
                "anyOf": [{"$ref": "#/$defs/Round"}, {"$ref": "#/$defs/Square"}, {"type": "null"}],
                "default": None,
            },
            "colour": {"$ref": "#/$defs/Colour", "default": "red"},
            "fills": {
                "type": "array",
                "items": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "default": [],
            },
            "labels": {
                "anyOf": [
                    {"type": "object", "additionalProperties": {"type": "string"}},
                    {"type": "null"},
                ],
                "default": None,
            },
            "data": {
                "anyOf": [{"type": "string", "contentEncoding": "base64"}, {"type": "null"}],
                "default": None,
            },
            "count": {
                "anyOf": [{"type": "integer", "minimum": 0, "maximum": 2**64 - 1}, {"type": "null"}],
                "description": "Ten if absent.",
            },
        },
        "required": ["name", "path"],
    }
    assert types["Square"]["properties"]["side"] == {
        "type": "integer",
        "minimum": -(2**63),
        "maximum": 2**63 - 1,
        "default": 1,
    }
    assert types["DrawResult"]["required"] == ["size", "parts", "done"]
    assert {name: types["DrawResult"]["properties"][name] for name in ("hole", "keepers", "main")} == {
        "hole": {
            "anyOf": [{"$ref": "#/$defs/Hole"}, {"type": "null"}],
            "description": "Told if there is one.",
        },
        "keepers": {"type": "object", "additionalProperties": {"type": "string"}},
        "main": {"$ref": "#/$defs/Colour"},
    }
    assert types["Colour"]["enum"] == ["red", "blue"]


def test_every_kind_of_message_is_taken_and_nothing_else() -> None:
    """The schema as a whole is of use to whoever has a recorded conversation."""
    schema = json.loads(write([CATALOG]))
    drawn = {"method": "drawn", "params": {"data": ""}, "emittedAtMs": 5}
    good = [
        {"id": 1, "method": "draw", "params": {"name": "x", "path": "/"}, "trace": {"traceparent": "t"}},
        {"id": "a", "method": "draw/stop"},
        {"id": "a", "method": "draw/stop", "params": None, "trace": None},
        {"id": 1, "result": {}},
        {"id": 1, "error": {"code": -1, "message": "no", "data": [1]}},
        {"method": "seen"},
        drawn,
    ]
    bad = [
        {"id": 1, "method": "draw"},
        {"id": 1.5, "method": "draw/stop"},
        {"id": 2**63, "method": "draw/stop"},
        {"id": 1, "method": "draw/stop", "params": {"x": 1}},
        {"id": 1, "method": "dance", "params": {}},
        {"id": 1, "error": {"message": "no"}},
        {"method": "drawn", "params": {"data": ""}},
        drawn | {"params": {}},
    ]

    assert [message for message in good if not takes(schema, message)] == []
    assert [message for message in bad if takes(schema, message)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGS)
def test_an_endpoints_schema_is_one(name: str) -> None:
    """A validator that meets a wrong keyword passes over it, and then takes anything."""
    Draft202012Validator.check_schema(endpoint(name))


@pytest.mark.parametrize("name", CATALOGS)
def test_no_type_has_the_name_of_a_message(name: str) -> None:
    """Both are below one key."""
    messages = {"RequestId", "Request", "Answer", "ErrorAnswer", "ClientNotification", "ServerNotification"}

    assert messages & Outline(CATALOGS[name]).types.keys() == set()


@pytest.mark.slow
def test_both_endpoints_are_one_schema_in_which_references_stay_apart() -> None:
    """``InitializeParams`` means something else at each."""
    both = json.loads(write(list(CATALOGS.values())))
    hello_exec = {"id": 1, "method": "initialize", "params": {"clientName": "x"}}
    hello_app = {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "x", "version": "1"}}}

    Draft202012Validator.check_schema(both)
    assert takes(both, hello_exec)
    assert takes(both, hello_app)
    assert not takes(both, {"id": 1, "method": "initialize", "params": {}})
    assert takes(endpoint("exec"), hello_exec)
    assert not takes(endpoint("exec"), hello_app)


START = {"processId": "p", "argv": [], "cwd": "file:///", "env": {}, "tty": False}
SPAWN = {"processHandle": "p", "command": [], "cwd": "/"}
POLICY = {"inherit": "core", "ignoreDefaultExcludes": True, "exclude": [], "set": {}, "includeOnly": []}

PARAMS: list[tuple[str, str, Any]] = [
    ("exec", "initialize", {"clientName": "x", "resumeSessionId": None, "more": 1}),
    ("exec", "initialize", {}),
    ("exec", "environment/info", None),
    ("exec", "environment/info", {}),
    ("exec", "environment/info", {"x": 1}),
    ("exec", "process/start", START),
    ("exec", "process/start", START | {"tty": None}),
    ("exec", "process/start", START | {"envPolicy": POLICY, "sandbox": {"x": 1}}),
    ("exec", "process/start", START | {"envPolicy": POLICY | {"inherit": "some"}}),
    ("exec", "process/start", START | {"env": {"A": None}}),
    ("exec", "process/start", START | {"managedNetwork": {"loopbackPorts": [65535]}}),
    ("exec", "process/start", START | {"managedNetwork": {"loopbackPorts": [65536]}}),
    ("exec", "process/read", {"processId": "p", "afterSeq": 2**64 - 1, "waitMs": None}),
    ("exec", "process/read", {"processId": "p", "afterSeq": 2**64}),
    ("exec", "process/read", {"processId": "p", "maxBytes": -1}),
    ("exec", "process/write", {"processId": "p", "chunk": "aGk=", "writeId": ""}),
    ("exec", "process/write", {"processId": "p", "chunk": None, "writeId": ""}),
    ("exec", "process/signal", {"processId": "p", "signal": "interrupt"}),
    ("exec", "process/signal", {"processId": "p", "signal": "kill"}),
    ("exec", "process/signal", {"processId": "p", "signal": "SIGKILL"}),
    ("exec", "process/signal", {"processId": "p", "signal": "stop", "tree": None}),
    ("exec", "initialize", {"clientName": "x", "holdfast": 1}),
    ("exec", "initialize", {"clientName": "x", "holdfast": "1"}),
    ("exec", "initialize", {"clientName": "x", "holdfast": 2**64}),
    ("exec", "session/takeOver", {"sessionId": "s"}),
    ("exec", "session/takeOver", {"sessionId": "s", "clientName": None}),
    ("exec", "session/close", None),
    ("exec", "session/close", {"sessionId": "s"}),
    ("exec", "process/list", {}),
    ("exec", "process/usage", {}),
    ("exec", "process/usage", {"names": ["p", ""]}),
    ("exec", "process/usage", {"names": "p"}),
    ("exec", "process/start", START | {"size": {"rows": 0, "cols": 65535}, "limits": {}}),
    ("exec", "process/start", START | {"size": {"rows": 1, "cols": 65536}}),
    ("exec", "process/start", START | {"size": {"rows": 1}}),
    ("exec", "process/start", START | {"limits": {"memoryBytes": 2**64 - 1, "openFiles": None}}),
    ("exec", "process/start", START | {"limits": {"memoryBytes": 2**64}}),
    ("exec", "process/start", START | {"timeoutMs": 1.5}),
    ("exec", "process/start", START | {"idempotent": None}),
    ("exec", "process/wait", {"processId": "p", "waitMs": 2**64 - 1}),
    ("exec", "process/wait", {"processId": "p", "waitMs": -1}),
    ("exec", "process/closeStdin", {"processId": "p", "writeId": None}),
    ("exec", "process/closeStdin", {"processId": "p", "writeId": 1}),
    ("exec", "process/resize", {"processId": "p", "size": {"rows": 1, "cols": 1}}),
    ("exec", "process/resize", {"processId": "p", "size": None}),
    ("exec", "process/terminate", {"processId": "p", "graceMs": 0}),
    ("exec", "process/terminate", {"processId": "p", "graceMs": True}),
    ("app", "initialize", {"clientInfo": {"name": "x", "version": "1"}, "capabilities": None}),
    ("app", "initialize", {"clientInfo": {"name": "x"}}),
    ("app", "process/spawn", SPAWN),
    ("app", "process/spawn", SPAWN | {"outputBytesCap": None, "timeoutMs": -(2**63), "env": {"A": None}}),
    ("app", "process/spawn", SPAWN | {"timeoutMs": 2**63}),
    ("app", "process/spawn", SPAWN | {"outputBytesCap": 2**64 - 1}),
    ("app", "process/spawn", SPAWN | {"outputBytesCap": 2**64}),
    ("app", "process/spawn", SPAWN | {"cwd": "x"}),
    ("app", "process/spawn", SPAWN | {"tty": None}),
    ("app", "process/writeStdin", {"processHandle": "p", "deltaBase64": None}),
    ("app", "process/resizePty", {"processHandle": "p", "size": {"rows": 65536, "cols": 1}}),
    ("app", "command/exec", {"command": ["x"], "sandboxPolicy": {"type": "readOnly"}}),
    ("app", "command/exec", {"command": ["x"], "sandboxPolicy": {"type": "none"}}),
    (
        "app",
        "command/exec",
        {"command": ["x"], "sandboxPolicy": {"type": "externalSandbox", "networkAccess": "enabled"}},
    ),
    (
        "app",
        "command/exec",
        {"command": ["x"], "sandboxPolicy": {"type": "workspaceWrite", "writableRoots": ["x"]}},
    ),
]


@pytest.mark.parametrize(("name", "method", "params"), PARAMS)
def test_a_schema_takes_the_params_that_the_decoder_takes(name: str, method: str, params: Any) -> None:
    """A client that asks the schema first is never surprised by the server."""
    try:
        METHODS[name][method].decode(params)
    except BadRequest:
        decodes = False
    else:
        decodes = True

    assert takes(endpoint(name), {"id": 1, "method": method, "params": params}) == decodes
