"""What a request to start something comes to, and which of several mistakes is told."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.config import AppLimits
from holdfast.dialects.app import order
from holdfast.dialects.app.explain import explain
from holdfast.dialects.app.order import COMMAND, PROCESS, Family, Order, Terms
from holdfast.errors import Refused
from holdfast.model import EnvironmentPolicy, Inherit, ProcessTerms, Size, Spec
from holdfast.protocol import app as m
from holdfast.value import replace
from tests.fakes.dialects import HOST

LIMITS = AppLimits(
    buffered_bytes=1 << 21,
    drain_seconds=2.0,
    process_quiet_seconds=0.25,
    command_quiet_seconds=0.5,
    command_policy="danger-full-access",
)
SPAWN = {"command": ["x"], "processHandle": "h", "cwd": "/tmp"}
EXEC = {"command": ["x"]}

TEN = ProcessTerms(timeout=10.0)
ALL = EnvironmentPolicy(Inherit.ALL, ignore_default_excludes=True, exclude=(), set=(), include_only=())


def process(**params: Any) -> Order:
    return order.process(m.decode_params({**SPAWN, **params}, m.SpawnParams), LIMITS)


def command(**params: Any) -> Order:
    return order.command(m.decode_params({**EXEC, **params}, m.ExecParams), HOST, LIMITS)


def refusal(family: Family, **params: Any) -> tuple[int, str]:
    with pytest.raises(Refused) as caught:
        process(**params) if family is PROCESS else command(**params)
    explained = explain(caught.value, ())
    return explained.code, explained.message


# What is asked for.


def test_a_process_has_its_defaults() -> None:
    """A mebibyte of each stream, ten seconds, no input, nothing told before the end."""
    assert process() == Order(
        Spec(argv=["x"], cwd="/tmp", env={}, env_policy=ALL, terms=TEN, name="h"),
        Terms(terminal=False, streamed=False, stdin=False, cap=1 << 20, quiet=0.25, hard=2.0),
    )


def test_a_command_has_its_defaults() -> None:
    """It runs in the server's own directory."""
    assert command() == Order(
        Spec(argv=["x"], cwd=HOST.cwd, env={}, env_policy=ALL, terms=TEN),
        Terms(terminal=False, streamed=False, stdin=False, cap=1 << 20, quiet=0.5, hard=2.0),
    )


def test_a_terminal_is_streamed_and_written_to_and_has_a_size() -> None:
    """Whether or not its client asks for both."""
    default, sized = process(tty=True), command(tty=True, processId="c", size={"rows": 5, "cols": 7})

    assert default.spec.terminal == Size(24, 80)
    assert sized.spec.terminal == Size(5, 7)
    for placed in (default, sized):
        assert (placed.terms.terminal, placed.terms.streamed, placed.terms.stdin) == (True, True, True)


def test_streams_are_asked_for_one_by_one() -> None:
    stdin, output = process(streamStdin=True), command(streamStdoutStderr=True, processId="c")

    assert (stdin.spec.stdin, stdin.terms.stdin, stdin.terms.streamed) == (True, True, False)
    assert (output.spec.stdin, output.terms.stdin, output.terms.streamed) == (False, False, True)


def test_variables_are_laid_over_the_servers_own() -> None:
    """Null takes one away; no names are held back, because the client runs as the server's user."""
    given = {"A": "1", "B": None}

    assert process(env=given).spec == Spec(
        argv=["x"], cwd="/tmp", env=given, env_policy=ALL, terms=TEN, name="h"
    )
    assert command(env=given).spec.env == given
    assert process(env=None).spec.env == command(env=None).spec.env == {}


STREAMED = {"streamStdoutStderr": True}
NAMED = {"streamStdoutStderr": True, "processId": "c"}


@pytest.mark.parametrize(
    ("placed", "cap", "whole"),
    [
        (process(outputBytesCap=5), 5, False),
        (process(outputBytesCap=0), 0, False),
        (process(outputBytesCap=None, **STREAMED), None, False),
        (process(outputBytesCap=None), 1 << 21, False),
        (process(outputBytesCap=2**64 - 1), 1 << 21, False),
        (process(outputBytesCap=2**64 - 1, **STREAMED), 2**64 - 1, False),
        (command(outputBytesCap=5), 5, False),
        (command(outputBytesCap=0), 0, False),
        (command(outputBytesCap=None), 1 << 20, False),
        (command(outputBytesCap=1 << 21), 1 << 21, False),
        (command(outputBytesCap=2**64 - 1), 1 << 21, True),
        (command(outputBytesCap=2**64 - 1, **NAMED), 2**64 - 1, False),
        (command(disableOutputCap=True), 1 << 21, True),
        (command(disableOutputCap=True, outputBytesCap=None, **NAMED), None, True),
    ],
)
def test_output_is_capped_as_asked_and_what_is_kept_here_is_always_bounded(
    placed: Order, cap: int | None, *, whole: bool
) -> None:
    """Null means no cap for a process and the default for a command."""
    assert (placed.terms.cap, placed.whole) == (cap, whole)


@pytest.mark.parametrize(
    ("placed", "timeout"),
    [
        (process(timeoutMs=0), 0.0),
        (process(timeoutMs=1500), 1.5),
        (process(timeoutMs=None), None),
        (process(timeoutMs=2**63 - 1), (2**63 - 1) / 1000),
        (command(timeoutMs=0), 0.0),
        (command(timeoutMs=None), 10.0),
        (command(disableTimeout=True), None),
        (command(disableTimeout=True, timeoutMs=None), None),
    ],
)
def test_the_time_is_bounded_as_asked(placed: Order, timeout: float | None) -> None:
    """Null means no bound for a process and the default for a command."""
    assert placed.spec.terms.timeout == timeout


@pytest.mark.parametrize(
    ("cwd", "directory"),
    [
        (None, "/srv/a b"),
        ("", "/srv/a b/"),
        (".", "/srv/a b/."),
        ("sub/x", "/srv/a b/sub/x"),
        ("..", "/srv/a b/.."),
        ("/tmp", "/tmp"),
        ("~", "/home/é"),
        ("~/x", "/home/é/x"),
        ("~root", "/srv/a b/~root"),
        ("file:///tmp", "/srv/a b/file:///tmp"),
    ],
)
def test_the_directory_of_a_command_is_relative_to_the_servers(cwd: str | None, directory: str) -> None:
    assert command(cwd=cwd).spec.cwd == directory


def test_without_a_home_a_tilde_is_a_name_like_any_other() -> None:
    homeless = replace(HOST, home=None)

    placed = order.command(m.decode_params({**EXEC, "cwd": "~"}, m.ExecParams), homeless, LIMITS)

    assert placed.spec.cwd == "/srv/a b/~"


# Policies.

NO_NETWORK = "CODEX_SANDBOX_NETWORK_DISABLED"


@pytest.mark.parametrize(
    ("params", "env"),
    [
        ({}, {}),
        ({"sandboxPolicy": None}, {}),
        ({"sandboxPolicy": {"type": "dangerFullAccess"}}, {}),
        ({"permissionProfile": ":danger-full-access"}, {}),
        ({"sandboxPolicy": {"type": "externalSandbox"}}, {NO_NETWORK: "1"}),
        ({"sandboxPolicy": {"type": "externalSandbox", "networkAccess": "restricted"}}, {NO_NETWORK: "1"}),
        ({"sandboxPolicy": {"type": "externalSandbox", "networkAccess": "enabled"}}, {}),
        ({"sandboxPolicy": {"type": "externalSandbox"}, "env": {"A": "1"}}, {"A": "1", NO_NETWORK: "1"}),
        ({"sandboxPolicy": {"type": "externalSandbox"}, "env": {NO_NETWORK: "0"}}, {NO_NETWORK: "0"}),
        ({"sandboxPolicy": {"type": "readOnly"}}, {NO_NETWORK: "1"}),
        ({"sandboxPolicy": {"type": "readOnly", "networkAccess": True}}, {}),
        ({"sandboxPolicy": {"type": "workspaceWrite"}}, {NO_NETWORK: "1"}),
        ({"permissionProfile": ":read-only"}, {NO_NETWORK: "1"}),
        ({"permissionProfile": ":workspace"}, {NO_NETWORK: "1"}),
    ],
)
def test_a_command_is_told_when_its_policy_gives_it_no_network(
    params: dict[str, Any], env: dict[str, str]
) -> None:
    """Unless the client says otherwise itself."""
    assert command(**params).spec.env == env


@pytest.mark.parametrize(
    ("params", "network"),
    [
        ({"sandboxPolicy": {"type": "readOnly"}}, False),
        ({"sandboxPolicy": {"type": "readOnly", "networkAccess": True}}, True),
        ({"sandboxPolicy": {"type": "workspaceWrite", "writableRoots": ["/a"]}}, False),
        ({"permissionProfile": ":read-only"}, False),
        ({"permissionProfile": ":workspace"}, False),
    ],
)
def test_a_sandbox_is_part_of_the_order_and_never_silently_left_out(
    params: dict[str, Any], *, network: bool
) -> None:
    """What it means is the matter of the policy; that it arrives is ours."""
    spec = command(cwd="/there", **params).spec

    assert spec.sandbox is not None
    assert (spec.sandbox.network, spec.sandbox.cwd) == (network, "/there")
    assert spec.sandbox.entries is not None


@pytest.mark.parametrize("confined", [True, False])
def test_a_command_without_a_policy_gets_the_servers_own(*, confined: bool) -> None:
    """Read-only, unless whoever started the server wants it otherwise."""
    limits = replace(LIMITS, command_policy=AppLimits().command_policy) if confined else LIMITS

    placed = order.command(m.decode_params(EXEC, m.ExecParams), HOST, limits)

    assert (placed.spec.sandbox is not None) == confined
    assert placed.spec.env == ({NO_NETWORK: "1"} if confined else {})


def test_a_process_has_no_sandbox() -> None:
    """Its family knows none."""
    assert process().spec.sandbox is None


@pytest.mark.parametrize("profile", [":x", ":", ":Read-Only"])
def test_a_built_in_profile_that_is_none_is_refused_by_name(profile: str) -> None:
    unknown = f"default_permissions refers to unknown built-in profile `{profile}`"

    assert refusal(COMMAND, permissionProfile=profile) == (-32600, f"invalid permission profile: {unknown}")


@pytest.mark.parametrize("profile", ["x", ""])
def test_other_profiles_are_not_known(profile: str) -> None:
    text = "invalid permission profile: default_permissions requires a `[permissions]` table"

    assert refusal(COMMAND, permissionProfile=profile) == (-32600, text)


# The order of the checks: all mistakes at once, and then one less each time.


def test_the_first_mistake_of_a_process_is_told() -> None:
    params: dict[str, Any] = {
        "command": [],
        "processHandle": "",
        "size": {"rows": 0, "cols": 0},
        "timeoutMs": -1,
    }
    told = [refusal(PROCESS, **params)]
    for repaired in ({"command": ["x"]}, {"processHandle": "h"}, {"tty": True}, {"timeoutMs": 1}):
        params |= repaired
        told.append(refusal(PROCESS, **params))
    params["size"] = {"rows": 1, "cols": 1}

    assert told == [
        (-32600, "command must not be empty"),
        (-32600, "processHandle must not be empty"),
        (-32602, "process/spawn size requires tty: true"),
        (-32602, "process/spawn timeoutMs must be non-negative, got -1"),
        (-32602, "process size rows and cols must be greater than 0"),
    ]
    assert process(**params).spec.terminal == Size(1, 1)


def test_the_first_mistake_of_a_command_is_told() -> None:
    params: dict[str, Any] = {
        "command": [],
        "permissionProfile": ":x",
        "sandboxPolicy": {"type": "dangerFullAccess"},
        "size": {"rows": 0, "cols": 1},
        "outputBytesCap": 0,
        "disableOutputCap": True,
        "timeoutMs": -1,
        "disableTimeout": True,
    }
    told = [refusal(COMMAND, **params)]
    for repaired in (
        {"command": ["x"]},
        {"sandboxPolicy": None},
        {"tty": True},
        {"disableOutputCap": False},
        {"disableTimeout": False},
        {"timeoutMs": 0},
        {"permissionProfile": None},
        {"size": {"rows": 1, "cols": 1}},
    ):
        params |= repaired
        told.append(refusal(COMMAND, **params))
    params["processId"] = ""

    unknown = "default_permissions refers to unknown built-in profile `:x`"
    assert told == [
        (-32600, "command must not be empty"),
        (-32600, "`permissionProfile` cannot be combined with `sandboxPolicy`"),
        (-32602, "command/exec size requires tty: true"),
        (-32602, "command/exec cannot set both outputBytesCap and disableOutputCap"),
        (-32602, "command/exec cannot set both timeoutMs and disableTimeout"),
        (-32602, "command/exec timeoutMs must be non-negative, got -1"),
        (-32600, f"invalid permission profile: {unknown}"),
        (-32602, "command/exec size rows and cols must be greater than 0"),
        (-32600, "command/exec tty or streaming requires a client-supplied processId"),
    ]
    assert command(**params).spec.terminal == Size(1, 1)


@pytest.mark.parametrize("asked", ["tty", "streamStdin", "streamStdoutStderr"])
def test_whatever_is_talked_to_needs_a_name(asked: str) -> None:
    text = "command/exec tty or streaming requires a client-supplied processId"

    assert refusal(COMMAND, **{asked: True}) == (-32600, text)


@pytest.mark.parametrize(("rows", "cols"), [(0, 1), (1, 0), (0, 0)])
@pytest.mark.parametrize("family", [PROCESS, COMMAND], ids=["process", "command"])
def test_a_terminal_without_room_is_refused(family: Family, rows: int, cols: int) -> None:
    size = {"rows": rows, "cols": cols}

    assert refusal(family, tty=True, size=size) == (-32602, family.no_size())
    assert refusal(family, size=size) == (-32602, family.size_without_terminal())
