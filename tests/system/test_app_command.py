"""command/exec from end to end: one answer at the end, deltas before it, and the words of its controls."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.app_client import TRANSPORTS, Place, app_client, exec_params, serving, write_params
from tests.fakes.client import Message, sha256
from tests.fakes.gate import Gate, gone

MIB = 1 << 20

NO_NETWORK = "CODEX_SANDBOX_NETWORK_DISABLED"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    (home / "inside").mkdir()
    return home


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Iterator[Place]:
    """One server for the tests that need no other."""
    env = {"HOME": str(home), "KEPT": "server"}
    with serving("ws", tmp_path_factory.mktemp("command"), env=env) as place:
        yield place


def control(name: str, data: bytes | None = None, *, close: bool = False) -> Message:
    return write_params(name, data, close=close, key="processId")


def result(**changes: Any) -> Message:
    return {"exitCode": 0, "stdout": "", "stderr": "", **changes}


# The answer.


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_answer_comes_after_every_delta_and_nothing_follows_it(
    tmp_path: Path, transport: str
) -> None:
    """Whoever has the answer has everything."""
    noise = os.urandom(4 * MIB)
    (tmp_path / "noise").write_bytes(noise)
    script = 'cat "$0" & cat "$0" >&2; wait; exit 3'
    with serving(transport, tmp_path) as place:
        async with app_client(place) as talking:
            answered = await talking.execute(
                "sh",
                "-c",
                script,
                f"{tmp_path}/noise",
                processId="c",
                streamStdoutStderr=True,
                disableOutputCap=True,
            )
            # Were anything to follow, it would be on the wire before the answer to this.
            await talking.execute("true")

    tale = talking.command("c")
    kinds = [message.get("method", "answer") for message in talking.messages]
    assert answered == result(exitCode=3)
    assert (sha256(tale.data("stdout")), sha256(tale.data("stderr"))) == (sha256(noise),) * 2
    assert set(kinds[1:-2]) == {"command/exec/outputDelta"}
    assert kinds[-2:] == ["answer", "answer"]


@pytest.mark.parametrize("options", [{}, {"processId": None}, {"processId": ""}, {"processId": "c"}], ids=str)
async def test_a_buffered_command_needs_no_name_and_sends_no_deltas(
    place: Place, options: dict[str, Any]
) -> None:
    """The simplest call there is: a command in, its result out."""
    async with app_client(place) as talking:
        answered = await talking.execute("sh", "-c", "printf out; printf err >&2; exit 3", **options)

    assert answered == result(exitCode=3, stdout="out", stderr="err")
    assert [message for message in talking.messages if "method" in message] == []


async def test_commands_without_a_name_run_side_by_side(place: Place, gate: Gate) -> None:
    """None of them waits for another, and none can be reached by a guessed name."""
    async with app_client(place) as talking:
        held = [
            talking.post("command/exec", exec_params("sh", "-c", f"{gate.shell}; echo {number}"))
            for number in range(5)
        ]
        await gate.reached(5)
        quick = await talking.execute("echo", "quick")
        guesses = [
            await talking.refusal("command/exec/terminate", {"processId": name}) for name in ("0", "1", "")
        ]
        still = [answer.done() for answer in held]
        gate.open(5)
        results = [await talking.result(answer) for answer in held]

    assert quick == result(stdout="quick\n")
    assert guesses == [(-32600, f'no active command/exec for process id "{name}"') for name in ("0", "1", "")]
    assert still == [False] * 5
    assert results == [result(stdout=f"{number}\n") for number in range(5)]


@pytest.mark.slow
async def test_a_name_can_be_used_again_right_after_the_answer(place: Place) -> None:
    """300 times in a row: never a duplicate."""
    async with app_client(place) as talking:
        results = [await talking.execute("true", processId="c") for _ in range(300)]

    assert results == [result()] * 300


# Caps and times.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"outputBytesCap": 5}, 5),
        ({"outputBytesCap": 0}, 0),
        ({"outputBytesCap": None}, MIB),
        ({}, MIB),
        ({"disableOutputCap": True}, 3 * MIB),
        ({"outputBytesCap": None, "disableOutputCap": True}, 3 * MIB),
    ],
    ids=str,
)
async def test_the_cap_of_a_command_can_be_set_and_switched_off_and_null_is_the_default(
    place: Place, options: dict[str, Any], kept: int
) -> None:
    """Here null does not mean no cap, unlike for a process."""
    async with app_client(place) as talking:
        answered = await talking.execute("head", "-c", str(3 * MIB), "/dev/zero", **options)
        streamed = await talking.execute(
            "head", "-c", str(3 * MIB), "/dev/zero", **options, processId="c", streamStdoutStderr=True
        )

    tale = talking.command("c")
    assert answered == result(stdout="\0" * kept)
    assert streamed == result()
    assert tale.data() == bytes(kept)
    assert tale.caps().count(True) == int(kept < 3 * MIB)
    assert tale.caps()[-1] == (kept < 3 * MIB)


@pytest.mark.slow
async def test_a_timeout_ends_a_command_with_124_and_what_it_had_said(place: Place, gate: Gate) -> None:
    """The answer comes all the same."""
    async with app_client(place) as talking:
        at_once = await talking.execute("sleep", "1000", timeoutMs=0)
        running = talking.post(
            "command/exec", exec_params("sh", "-c", f"printf said; {gate.shell}", timeoutMs=600)
        )
        await gate.reached()
        answered = await talking.result(running)

    assert at_once == result(exitCode=124)
    assert answered == result(exitCode=124, stdout="said")


async def test_a_command_without_a_timeout_outlives_one_with(place: Place) -> None:
    """Switched off is switched off; null is the default, which is longer than the other."""
    async with app_client(place) as talking:
        endless = talking.post(
            "command/exec", exec_params("sleep", "1000", processId="e", disableTimeout=True)
        )
        default = talking.post("command/exec", exec_params("sleep", "1000", processId="d", timeoutMs=None))
        timed = await talking.execute("sleep", "1000", timeoutMs=100)
        still = [endless.done(), default.done()]
        for name in ("e", "d"):
            await talking.call("command/exec/terminate", {"processId": name})
        codes = [(await talking.result(answer))["exitCode"] for answer in (endless, default)]

    assert timed["exitCode"] == 124
    assert still == [False, False]
    assert codes == [137, 137]


# Where it runs.


async def test_a_directory_is_relative_to_the_servers_and_the_tilde_is_home(place: Place, home: Path) -> None:
    """As a user would write it in a shell."""
    directories = [None, "", ".", "..", "tests", "/", "~", "~/inside"]
    async with app_client(place) as talking:
        default = await talking.execute("pwd", "-P")
        answers = [(await talking.execute("pwd", "-P", cwd=cwd))["stdout"] for cwd in directories]

    here = Path.cwd().resolve()
    assert default["stdout"] == f"{here}\n"
    expected = [here, here, here, here.parent, here / "tests", Path("/"), home, home / "inside"]
    assert answers == [f"{path}\n" for path in expected]


@pytest.mark.parametrize(
    ("cwd", "reason"),
    [
        ("missing", "No such file or directory (os error 2)"),
        ("~/missing", "No such file or directory (os error 2)"),
        ("file:///tmp", "No such file or directory (os error 2)"),
        ("/etc/passwd", "Not a directory (os error 20)"),
        ("a\0b", "nul byte found in provided data"),
    ],
)
async def test_a_directory_that_is_none_is_refused(place: Place, cwd: str, reason: str) -> None:
    """And no command runs anywhere else instead."""
    async with app_client(place) as talking:
        refusal = await talking.refusal("command/exec", exec_params("true", cwd=cwd))

    assert refusal == (-32603, f"failed to spawn command: {reason}")


@pytest.mark.parametrize(
    ("access", "restricted"),
    [
        ({"sandboxPolicy": {"type": "dangerFullAccess"}}, False),
        ({"sandboxPolicy": {"type": "externalSandbox"}}, True),
        ({"sandboxPolicy": {"type": "externalSandbox", "networkAccess": "restricted"}}, True),
        ({"sandboxPolicy": {"type": "externalSandbox", "networkAccess": "enabled"}}, False),
        ({"permissionProfile": ":danger-full-access"}, False),
    ],
    ids=str,
)
async def test_a_command_that_needs_no_sandbox_of_ours_runs_and_is_told_of_the_network(
    place: Place, access: dict[str, Any], *, restricted: bool
) -> None:
    """Programs leave out what cannot work without a network."""
    script = 'printf "%s %s %s" "$KEPT" "$NEW" "${' + NO_NETWORK + '-unset}"'
    async with app_client(place) as talking:
        answered = await talking.call(
            "command/exec", {"command": ["sh", "-c", script], "env": {"NEW": "client"}, **access}
        )
        unset = await talking.call(
            "command/exec", {"command": ["sh", "-c", script], "env": {"KEPT": None}, **access}
        )

    network = "1" if restricted else "unset"
    assert answered == result(stdout=f"server client {network}")
    assert unset == result(stdout=f"  {network}")


SANDBOXED: list[tuple[dict[str, Any], bool, bool]] = [
    ({"sandboxPolicy": {"type": "readOnly"}}, False, False),
    ({"sandboxPolicy": {"type": "readOnly", "networkAccess": True}}, False, True),
    ({"sandboxPolicy": {"type": "workspaceWrite", "networkAccess": True}}, True, True),
    ({"permissionProfile": ":read-only"}, False, False),
    ({"permissionProfile": ":workspace"}, True, False),
]


@pytest.mark.slow
@pytest.mark.parametrize(("access", "writes", "network"), SANDBOXED, ids=str)
async def test_a_command_may_do_what_its_policy_says_and_no_more(
    place: Place, home: Path, access: dict[str, Any], *, writes: bool, network: bool
) -> None:
    """Everything can be read; a workspace has /tmp as a place to write."""
    proof = Path(f"/tmp/holdfast-{os.getpid()}-{writes}-{network}")
    reach = f"{sys.executable} -c 'import socket; socket.socket(socket.AF_INET)' 2>/dev/null && echo net"
    script = f"cat {home}/seen; touch {proof} && echo written; {reach}; true"
    (home / "seen").write_text("read\n")
    try:
        async with app_client(place) as talking:
            answered = await talking.call("command/exec", {"command": ["sh", "-c", script], **access})
        left = proof.exists()
    finally:
        proof.unlink(missing_ok=True)

    expected = ["read", *(["written"] if writes else []), *(["net"] if network else [])]
    assert (answered["stdout"].split(), answered["exitCode"]) == (expected, 0)
    assert left == writes


@pytest.mark.parametrize("access", [{}, *(access for access, _, _ in SANDBOXED)], ids=str)
async def test_where_there_are_no_sandboxes_one_is_refused_and_nothing_runs(
    tmp_path: Path, access: dict[str, Any]
) -> None:
    """To run such a command without its sandbox would be the worst of answers."""
    options = ("--sandbox", "off", "--command-sandbox", "read-only")
    with serving("ws", tmp_path, *options) as place:
        async with app_client(place) as talking:
            code, text = await talking.refusal(
                "command/exec", {"command": ["touch", f"{tmp_path}/ran"], **access}
            )
            await talking.execute("true")

    assert code == -32600
    assert text == "the sandbox cannot be kept on this host: sandboxes are switched off"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("profile", ["x", ""])
async def test_a_profile_that_nobody_has_is_refused(place: Place, profile: str) -> None:
    """Built-in names begin with a colon; others would have to be configured."""
    async with app_client(place) as talking:
        refusal = await talking.refusal("command/exec", {"command": ["true"], "permissionProfile": profile})

    text = "invalid permission profile: default_permissions requires a `[permissions]` table"
    assert refusal == (-32600, text)


# Control.


async def test_a_command_can_be_written_to_and_its_input_closed(place: Place) -> None:
    """The answer to the command itself waits meanwhile."""
    async with app_client(place) as talking:
        running = talking.post("command/exec", exec_params("cat", processId="c", streamStdin=True))
        answers = [
            await talking.call("command/exec/write", control("c", b"one ")),
            await talking.call("command/exec/write", control("c", b"two", close=True)),
        ]
        answered = await talking.result(running)
        late = await talking.refusal("command/exec/write", control("c", b"late"))

    assert answers == [{}, {}]
    assert answered == result(stdout="one two")
    assert late == (-32600, 'no active command/exec for process id "c"')


async def test_input_that_was_closed_takes_no_more_bytes(place: Place, gate: Gate) -> None:
    """The words are the same as for a process."""
    async with app_client(place) as talking:
        running = talking.post(
            "command/exec", exec_params("sh", "-c", f"cat; {gate.shell}", processId="c", streamStdin=True)
        )
        await talking.call("command/exec/write", control("c", close=True))
        refusal = await talking.refusal("command/exec/write", control("c", b"late"))
        gate.open()
        answered = await talking.result(running)

    assert refusal == (-32600, "stdin is already closed")
    assert answered == result()


@pytest.mark.parametrize("options", [{}, {"streamStdoutStderr": True}, {"tty": True}], ids=str)
async def test_a_terminated_command_is_answered_with_its_death(
    place: Place, gate: Gate, options: dict[str, Any]
) -> None:
    """Buffered or not, with its whole group, and with what it had said."""
    script = f"trap '' TERM HUP INT; sleep 1000 & printf $!; {gate.report}; wait"
    async with app_client(place) as talking:
        running = talking.post("command/exec", exec_params("sh", "-c", script, processId="c", **options))
        await gate.reached()
        answer = await talking.call("command/exec/terminate", {"processId": "c"})
        answered = await talking.result(running)
        said = answered["stdout"] or talking.command("c").data().decode()
        await gone(int(said))

    assert answer == {}
    assert answered == result(exitCode=137, stdout="" if options else said)


async def test_a_terminal_of_a_command_has_a_size_and_can_be_resized(place: Place) -> None:
    """The same as for a process, under the other names."""
    source = (
        "import os, signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})\n"
        "print(*os.get_terminal_size(0), flush=True); signal.sigwait({signal.SIGWINCH})\n"
        "print(*os.get_terminal_size(0))"
    )
    async with app_client(place) as talking:
        running = talking.post(
            "command/exec",
            exec_params(
                sys.executable, "-c", source, processId="c", tty=True, size={"rows": 33, "cols": 111}
            ),
        )
        tale = talking.command("c")
        await talking.until(lambda: b"\n" in tale.data())
        resized = await talking.call(
            "command/exec/resize", {"processId": "c", "size": {"rows": 40, "cols": 7}}
        )
        answered = await talking.result(running)

    assert resized == {}
    assert tale.data() == b"111 33\r\n7 40\r\n"
    assert answered == result()
