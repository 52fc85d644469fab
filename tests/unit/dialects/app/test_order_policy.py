"""What a command may do: its policy, its profile, or the server's own."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from holdfast.cli.overview import parser_of_all
from holdfast.config import AppLimits
from holdfast.dialects.app.explain import Declined
from holdfast.dialects.app.order import POLICIES, policy_of
from holdfast.protocol import app as m
from holdfast.sandbox import Access, Named, Sandbox, SandboxEntry, Where
from tests.fakes.dialects import HOST

READ_ALL = SandboxEntry(Named(Where.ROOT), Access.READ)
ROOTS = SandboxEntry(Named(Where.PROJECT_ROOTS), Access.WRITE)
SLASH_TMP = SandboxEntry(Named(Where.SLASH_TMP), Access.WRITE)
TMPDIR = SandboxEntry(Named(Where.TMPDIR), Access.WRITE)

Found = tuple[Sandbox | None, bool]
FULL: Found = (None, True)


def of(default: str = "danger-full-access", **params: Any) -> Found:
    asked = m.decode_params({"command": ["x"], **params}, m.ExecParams)
    return policy_of(asked, HOST, "/there", default)


def reads(*, network: bool = False) -> Found:
    return Sandbox((READ_ALL,), network, "/there"), network


def writes(*entries: SandboxEntry, root: str = HOST.cwd, network: bool = False) -> Found:
    return Sandbox((READ_ALL, ROOTS, *entries), network, "/there", roots=(root,)), network


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"type": "dangerFullAccess"}, FULL),
        ({"type": "readOnly"}, reads()),
        ({"type": "readOnly", "networkAccess": True}, reads(network=True)),
        ({"type": "workspaceWrite"}, writes(SLASH_TMP, TMPDIR)),
        ({"type": "workspaceWrite", "networkAccess": True}, writes(SLASH_TMP, TMPDIR, network=True)),
        ({"type": "workspaceWrite", "excludeSlashTmp": True}, writes(TMPDIR)),
        ({"type": "workspaceWrite", "excludeTmpdirEnvVar": True}, writes(SLASH_TMP)),
        (
            {"type": "workspaceWrite", "writableRoots": ["/a", "/b"], "excludeSlashTmp": True},
            writes(SandboxEntry("/a", Access.WRITE), SandboxEntry("/b", Access.WRITE), TMPDIR),
        ),
        ({"type": "externalSandbox"}, (None, False)),
        ({"type": "externalSandbox", "networkAccess": "enabled"}, FULL),
    ],
)
def test_a_policy_is_what_it_says(given: dict[str, Any], found: Found) -> None:
    """The workspace is the server's directory, wherever the command runs."""
    assert of(sandboxPolicy=given) == found


@pytest.mark.parametrize(
    ("profile", "found"),
    [
        (":read-only", reads()),
        (":workspace", writes(SLASH_TMP, TMPDIR, root="/there")),
        (":danger-full-access", FULL),
    ],
)
def test_a_profile_is_about_the_directory_of_the_command(profile: str, found: Found) -> None:
    assert of(permissionProfile=profile) == found


@pytest.mark.parametrize(
    ("default", "found"),
    [
        ("read-only", reads()),
        ("workspace-write", writes(SLASH_TMP, TMPDIR)),
        ("danger-full-access", FULL),
    ],
)
def test_without_either_the_server_decides(default: str, found: Found) -> None:
    assert of(default) == of(default, sandboxPolicy=None, permissionProfile=None) == found


@pytest.mark.parametrize("default", POLICIES)
def test_a_policy_of_the_commands_own_counts_whatever_the_server_has(default: str) -> None:
    assert of(default, sandboxPolicy={"type": "dangerFullAccess"}) == FULL
    assert of(default, permissionProfile=":read-only") == reads()


def test_the_command_line_offers_every_policy_and_the_strictest_is_the_default() -> None:
    """Three places name them."""
    serve = parser_of_all().parse_args(["serve"])

    for name in POLICIES:
        assert parser_of_all().parse_args(["serve", "--command-sandbox", name]).command_sandbox == name
    assert serve.command_sandbox == AppLimits().command_policy == "read-only"


def test_every_kind_of_policy_has_its_meaning() -> None:
    kinds = set(get_args(m.SandboxPolicy))

    assert kinds == {m.DangerFullAccess, m.ReadOnly, m.ExternalSandbox, m.WorkspaceWrite}


@pytest.mark.parametrize(
    ("profile", "reason"),
    [
        (":x", "default_permissions refers to unknown built-in profile `:x`"),
        (":", "default_permissions refers to unknown built-in profile `:`"),
        ("x", "default_permissions requires a `[permissions]` table"),
        ("", "default_permissions requires a `[permissions]` table"),
    ],
)
def test_a_profile_that_nobody_knows_is_declined(profile: str, reason: str) -> None:
    with pytest.raises(Declined) as caught:
        of(permissionProfile=profile)

    assert str(caught.value) == f"invalid permission profile: {reason}"
