"""A sandbox backend that is not ours is one file and one row of the table: nothing else has to change."""

from __future__ import annotations

import platform
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.host.sandbox.backends import SANDBOX_BACKENDS, SandboxBackendRow, SandboxProbe
from holdfast.host.sandbox.confinement import Confiner
from tests import toy_sandbox_backend
from tests.fakes.client import Client, Message, Refusal
from tests.fakes.sandboxes import READ_ALL, policy, run, talk
from tests.fakes.server import inside

ROW = SandboxBackendRow("toy", "tests.toy_sandbox_backend")

NO_NETWORK: Message = {
    "permissions": {"type": "managed", "file_system": {"type": "unrestricted"}, "network": "restricted"},
    "workspaceRoots": [],
    "windowsSandboxLevel": "disabled",
}
CONNECT = (sys.executable, "-I", "-S", "-c", "import socket; socket.socket()")


@pytest.fixture
async def talking() -> AsyncIterator[Client]:
    """A client of a server whose best sandbox backend is the toy."""
    confiner = Confiner(None, table=(ROW, *SANDBOX_BACKENDS))
    async with inside(confiner=confiner) as parts, talk(parts.url) as client:
        yield client


async def test_it_is_told_to_clients_under_its_name(talking: Client) -> None:
    info = await talking.call("environment/info")

    assert info["capabilities"]["holdfast"]["sandbox"] == {
        "backend": "toy",
        "filesystem": "toy",
        "protectsSubpaths": "none",
        "denial": "guess",
        "weaknesses": ["it is a toy"],
        "reason": "",
    }


async def test_it_confines_commands(talking: Client) -> None:
    free = await run(talking, None, *CONNECT, name="free")
    confined = await run(talking, NO_NETWORK, *CONNECT, name="confined")

    assert (free.code, free.denied) == (0, False)
    assert (confined.code, confined.denied) == (1, True)
    assert b"PermissionError" in confined.errors


async def test_what_it_cannot_keep_is_refused(talking: Client) -> None:
    with pytest.raises(Refusal, match="a toy knows nothing of files"):
        await talking.start("p", "/bin/true", sandbox=policy(READ_ALL))


def test_it_can_be_chosen_though_a_better_one_works() -> None:
    """``--sandbox`` takes its name from the same table."""
    confiner = Confiner(None, only="toy", table=(*SANDBOX_BACKENDS, ROW))

    assert (confiner.findings, confiner.guarantees.backend) == ({"toy": SandboxProbe()}, "toy")
    confiner.close()


def test_where_it_does_not_work_its_reason_and_its_cure_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """``holdfast doctor`` prints both."""
    monkeypatch.setattr(platform, "machine", lambda: "pdp11")
    confiner = Confiner(None, table=(ROW,))

    reason = "system calls of pdp11 are not known"
    assert confiner.findings == {"toy": SandboxProbe(reason, "play elsewhere")}
    assert confiner.guarantees.reason == f"toy: {reason}"
    confiner.close()


def test_the_toy_is_small() -> None:
    assert len(Path(toy_sandbox_backend.__file__).read_text(encoding="utf-8").splitlines()) < 50
