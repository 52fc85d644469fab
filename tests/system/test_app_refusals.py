"""Every refusal of the app dialects: its code, its words, and which of two mistakes is told."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.app_client import (
    FULL_ACCESS,
    AppClient,
    Place,
    app_client,
    exec_params,
    serving,
    spawn_params,
)

Refused = tuple[int, str]

NOWHERE = "No such file or directory (os error 2)"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One server for all tests of this module."""
    with serving("ws", tmp_path_factory.mktemp("refusals")) as place:
        yield place


@pytest.fixture
async def talking(place: Place) -> AsyncIterator[AppClient]:
    """A client whose name ``dup`` is taken twice: by a process and by a command."""
    async with app_client(place) as talking:
        await talking.spawn("dup", "cat", streamStdin=True)
        talking.post("command/exec", exec_params("cat", processId="dup", streamStdin=True))
        yield talking


async def pairwise(
    talking: AppClient,
    method: str,
    sound: Mapping[str, Any],
    faults: Mapping[Refused, Mapping[str, Any]],
    *excluded: tuple[int, int],
) -> tuple[dict[tuple[int, int], Refused], dict[tuple[int, int], Refused]]:
    """What is told of each two mistakes at once, and what should be: the one that stands first.

    A mistake with itself is that mistake alone.  ``excluded`` are pairs that cannot be made together.
    """
    told, expected = {}, {}
    listed = list(faults.items())
    for (first, (refusal, early)), (second, (_, late)) in itertools.combinations_with_replacement(
        enumerate(listed), 2
    ):
        if (first, second) not in excluded:
            params = {**sound, **late, **early}
            told[first, second] = await talking.refusal(method, params)
            expected[first, second] = refusal
    return told, expected


# Order.


async def test_of_two_mistakes_in_a_spawn_the_one_that_is_checked_first_is_told(talking: AppClient) -> None:
    """The order is part of the protocol: clients and their tests see it."""
    faults: dict[Refused, dict[str, Any]] = {
        (-32600, "Invalid request: AbsolutePathBuf deserialized without a base path"): {"cwd": "tmp"},
        (-32600, "command must not be empty"): {"command": []},
        (-32600, "processHandle must not be empty"): {"processHandle": ""},
        (-32602, "process/spawn size requires tty: true"): {"size": {"rows": 0, "cols": 0}},
        (-32602, "process/spawn timeoutMs must be non-negative, got -1"): {"timeoutMs": -1},
        (-32602, "process size rows and cols must be greater than 0"): {
            "tty": True,
            "size": {"rows": 0, "cols": 80},
        },
        (-32600, 'duplicate active process handle: "dup"'): {"processHandle": "dup"},
        (-32603, f"failed to spawn process: {NOWHERE}"): {"command": ["/nothing/here"]},
    }
    # Left out: a size with a terminal and without one.
    told, expected = await pairwise(talking, "process/spawn", spawn_params("h", "true"), faults, (3, 5))

    assert told == expected


async def test_of_two_mistakes_in_a_command_the_one_that_is_checked_first_is_told(talking: AppClient) -> None:
    """The same for the other family, which has more to contradict itself with."""
    faults: dict[Refused, dict[str, Any]] = {
        (-32600, "command must not be empty"): {"command": []},
        (-32600, "`permissionProfile` cannot be combined with `sandboxPolicy`"): {
            "permissionProfile": ":danger-full-access",
            "sandboxPolicy": FULL_ACCESS,
        },
        (-32602, "command/exec size requires tty: true"): {"size": {"rows": 0, "cols": 0}},
        (-32602, "command/exec cannot set both outputBytesCap and disableOutputCap"): {
            "outputBytesCap": 0,
            "disableOutputCap": True,
        },
        (-32602, "command/exec cannot set both timeoutMs and disableTimeout"): {
            "timeoutMs": 5,
            "disableTimeout": True,
        },
        (-32602, "command/exec timeoutMs must be non-negative, got -1"): {"timeoutMs": -1},
        (
            -32600,
            "invalid permission profile: default_permissions refers to unknown built-in profile `:x`",
        ): {"permissionProfile": ":x"},
        (-32602, "command/exec size rows and cols must be greater than 0"): {
            "tty": True,
            "size": {"rows": 24, "cols": 0},
        },
        (-32600, "command/exec tty or streaming requires a client-supplied processId"): {
            "streamStdoutStderr": True
        },
        (-32600, 'duplicate active command/exec process id: "dup"'): {"processId": "dup"},
        (-32603, f"failed to spawn command: {NOWHERE}"): {"command": ["/nothing/here"]},
    }
    told, expected = await pairwise(talking, "command/exec", {"command": ["true"]}, faults, (2, 7), (8, 9))

    assert told == expected


# Starting.


@pytest.mark.parametrize("cwd", ["", "tmp", "~", "~/x", "file:///tmp", "C:\\x"])
async def test_a_process_needs_an_absolute_directory(talking: AppClient, cwd: str) -> None:
    """Relative to what would be a guess."""
    refusal = await talking.refusal("process/spawn", spawn_params("h", "true", cwd=cwd))

    assert refusal == (-32600, "Invalid request: AbsolutePathBuf deserialized without a base path")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"command": None}, "invalid type: null, expected a sequence"),
        ({"command": [1]}, "invalid type: integer `1`, expected a string"),
        ({"processHandle": None}, "invalid type: null, expected a string"),
        ({"cwd": None}, "invalid type: null, expected path string"),
        ({"tty": None}, "invalid type: null, expected a boolean"),
        ({"streamStdin": 1}, "invalid type: integer `1`, expected a boolean"),
        ({"streamStdoutStderr": "x"}, 'invalid type: string "x", expected a boolean'),
        ({"outputBytesCap": -1}, "invalid value: integer `-1`, expected usize"),
        ({"outputBytesCap": 1.5}, "invalid type: floating point `1.5`, expected usize"),
        ({"timeoutMs": 2**63}, "invalid value: integer `9223372036854775808`, expected i64"),
        ({"timeoutMs": "1"}, 'invalid type: string "1", expected i64'),
        ({"env": []}, "invalid type: sequence, expected a map"),
        ({"env": {"A": 1}}, "invalid type: integer `1`, expected a string"),
        ({"size": 1}, "invalid type: integer `1`, expected struct ProcessTerminalSize"),
        ({"size": {"cols": 1}}, "missing field `rows`"),
        ({"size": {"rows": 1}}, "missing field `cols`"),
        ({"size": {"rows": 70_000, "cols": 1}}, "invalid value: integer `70000`, expected u16"),
    ],
    ids=str,
)
async def test_a_member_of_another_type_is_refused_in_the_decoders_words(
    talking: AppClient, changes: dict[str, Any], text: str
) -> None:
    """Before anything else is looked at: the command is empty as well."""
    refusal = await talking.refusal("process/spawn", {**spawn_params("h"), **changes})

    assert refusal == (-32600, f"Invalid request: {text}")


async def test_what_is_missing_is_named(talking: AppClient) -> None:
    """In the order of the members, after all that are of the wrong type."""
    sound = spawn_params("h", "true")
    refusals = {
        name: await talking.refusal("process/spawn", {k: v for k, v in sound.items() if k != name})
        for name in sound
    }
    nothing = await talking.refusal("process/spawn", {})
    absent = await talking.refusal("process/spawn")

    assert refusals == {name: (-32600, f"Invalid request: missing field `{name}`") for name in sound}
    assert nothing == (-32600, "Invalid request: missing field `command`")
    assert absent == (-32600, "Invalid request: missing field `params`")


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (["nosuchprog"], NOWHERE),
        (["/etc/passwd/x"], "Not a directory (os error 20)"),
        (["/etc/passwd"], "Permission denied (os error 13)"),
        (["/"], "Permission denied (os error 13)"),
        (["./nosuch"], NOWHERE),
        ([""], "missing program for pipe spawn"),
        (["true", "a\0b"], "nul byte found in provided data"),
    ],
    ids=str,
)
@pytest.mark.parametrize("family", ["process", "command"])
async def test_a_start_that_fails_is_told_with_the_systems_reason(
    talking: AppClient, command: list[str], text: str, family: str
) -> None:
    """The same words for both families."""
    if family == "process":
        refusal = await talking.refusal("process/spawn", spawn_params("h", *command))
    else:
        refusal = await talking.refusal("command/exec", exec_params(*command))

    assert refusal == (-32603, f"failed to spawn {family}: {text}")


async def test_a_missing_directory_is_told(talking: AppClient, tmp_path: Path) -> None:
    """Nothing runs anywhere else instead."""
    missing = await talking.refusal("process/spawn", spawn_params("h", "true", cwd=f"{tmp_path}/missing"))
    (tmp_path / "file").touch()
    file = await talking.refusal("process/spawn", spawn_params("h", "true", cwd=f"{tmp_path}/file"))

    assert missing == (-32603, f"failed to spawn process: {NOWHERE}")
    assert file == (-32603, "failed to spawn process: Not a directory (os error 20)")


# Control.

CONTROL = [
    ("process/writeStdin", "process/resizePty", "process/kill", "processHandle"),
    ("command/exec/write", "command/exec/resize", "command/exec/terminate", "processId"),
]


@pytest.mark.parametrize(("write", "resize", "kill", "key"), CONTROL, ids=["process", "command"])
async def test_control_checks_its_own_words_first_then_the_process(
    talking: AppClient, write: str, resize: str, kill: str, key: str
) -> None:
    """What is wrong by itself is told before what is wrong here and now."""
    unknown = {
        "process/kill": 'no active process for process handle "x"',
        "command/exec/terminate": 'no active command/exec for process id "x"',
    }[kill]
    size = {"rows": 1, "cols": 1}
    zero = {"rows": 1, "cols": 0}
    noun = "process" if key == "processHandle" else "command/exec"
    refusals = [
        await talking.refusal(write, {key: "x"}),
        await talking.refusal(write, {key: "x", "deltaBase64": None, "closeStdin": False}),
        await talking.refusal(write, {key: "x", "deltaBase64": "!!"}),
        await talking.refusal(write, {key: "x", "deltaBase64": ""}),
        await talking.refusal(write, {key: "x", "closeStdin": True}),
        await talking.refusal(resize, {key: "x", "size": zero}),
        await talking.refusal(resize, {key: "x", "size": size}),
        await talking.refusal(resize, {key: "dup", "size": zero}),
        await talking.refusal(resize, {key: "dup", "size": size}),
        await talking.refusal(kill, {key: "x"}),
    ]

    assert refusals == [
        (-32602, f"{write} requires deltaBase64 or closeStdin"),
        (-32602, f"{write} requires deltaBase64 or closeStdin"),
        (-32602, "invalid deltaBase64: Invalid symbol 33, offset 0."),
        (-32600, unknown),
        (-32600, unknown),
        (-32602, f"{noun} size rows and cols must be greater than 0"),
        (-32600, unknown),
        (-32602, f"{noun} size rows and cols must be greater than 0"),
        (-32600, "failed to resize PTY: process is not attached to a PTY"),
        (-32600, unknown),
    ]


@pytest.mark.parametrize(
    "delta", [{"deltaBase64": ""}, {"deltaBase64": "YQ=="}, {"closeStdin": True}], ids=str
)
async def test_a_process_without_a_stream_to_it_cannot_be_written_to(
    talking: AppClient, delta: dict[str, Any]
) -> None:
    """Not even nothing, and there is nothing to close."""
    await talking.spawn("deaf", "sleep", "1000")
    running = talking.post("command/exec", exec_params("sleep", "1000", processId="deaf"))
    refusals = [
        await talking.refusal("process/writeStdin", {"processHandle": "deaf", **delta}),
        await talking.refusal("command/exec/write", {"processId": "deaf", **delta}),
    ]

    assert refusals == [
        (-32600, "stdin streaming is not enabled for this process"),
        (-32600, "stdin streaming is not enabled for this command/exec"),
    ]
    assert not running.done()


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("a", "Invalid input length: 1"),
        ("YQ", "Invalid padding"),
        ("abcd=", "Invalid symbol 61, offset 4."),
        ("YR==", "Invalid last symbol 82, offset 1."),
        ("====", "Invalid symbol 61, offset 0."),
        ("YQ==YQ==", "Invalid symbol 61, offset 2."),
        ("-_-_", "Invalid symbol 45, offset 0."),
        ("é", "Invalid symbol 195, offset 0."),
        ("YQ==\n", "Invalid symbol 10, offset 4."),
    ],
)
async def test_base64_is_read_to_the_letter(talking: AppClient, text: str, detail: str) -> None:
    """What could be meant in two ways is not taken."""
    refusal = await talking.refusal("process/writeStdin", {"processHandle": "dup", "deltaBase64": text})

    assert refusal == (-32602, f"invalid deltaBase64: {detail}")


@pytest.mark.parametrize(
    ("name", "process", "command"),
    [
        ('a"b\\', r'"a\"b\\"', r'"a\"b\\"'),
        ("a\nb\tc", r'"a\nb\tc"', r'"a\nb\tc"'),
        ("\0", r'"\0"', r'"\u0000"'),
        ("\x01", r'"\u{1}"', r'"\u0001"'),
        ("\b\f", r'"\u{8}\u{c}"', r'"\b\f"'),
        ("\x7f\u200b", r'"\u{7f}\u{200b}"', '"\x7f\u200b"'),
        ("a\u0301", r'"a\u{301}"', '"a\u0301"'),
        ("é日本😀'", '"é日本😀\'"', '"é日本😀\'"'),
        ("", '""', '""'),
    ],
    ids=ascii,
)
async def test_names_are_quoted_as_each_family_quotes(
    talking: AppClient, name: str, process: str, command: str
) -> None:
    """Any text may be a name, and it must be readable in an error all the same."""
    of_process = await talking.refusal("process/kill", {"processHandle": name})
    of_command = await talking.refusal("command/exec/terminate", {"processId": name})

    assert of_process == (-32600, f"no active process for process handle {process}")
    assert of_command == (-32600, f"no active command/exec for process id {command}")
