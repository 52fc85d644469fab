"""The host of a server, as the server tells it and as its clients read it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.model import HostInfo
from holdfast.protocol.session import (
    Capabilities,
    EnvironmentInfo,
    Extensions,
    Sandboxes,
    ShellInfo,
    environment_info,
    host_info,
)
from holdfast.sandbox import NO_SANDBOXES, Guarantees, Protection, SandboxBackendName


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("home", [None, "/home/x"])
@pytest.mark.parametrize(
    "sandboxes",
    [
        NO_SANDBOXES,
        Guarantees(SandboxBackendName.BUBBLEWRAP, Protection.HARD, exact=True, filesystem="mount"),
        Guarantees(SandboxBackendName.LANDLOCK, Protection.SOFT, exact=True),
    ],
)
def test_a_host_comes_back_as_it_was_told(
    home: str | None,
    sandboxes: Guarantees,
    durable: bool,  # noqa: FBT001
) -> None:
    host = HostInfo(
        shell="/bin/zsh",
        cwd="/a b",
        home=home,
        temp="/var/tmp",
        temp_dirs=("/tmp", "/t\udcff"),
        provider="here",
        version="1",
        sandboxes=sandboxes,
        durable=durable,
    )
    told = msgspec.json.encode(environment_info(host, extended=True))

    assert host_info(msgspec.json.decode(told, type=EnvironmentInfo)) == host


def test_a_host_that_tells_little_has_what_every_host_has() -> None:
    told = msgspec.convert({"shell": {"name": "sh", "path": "/bin/sh"}}, EnvironmentInfo)

    assert host_info(told) == HostInfo(
        shell="/bin/sh",
        cwd="/",
        home=None,
        temp="/tmp",
        temp_dirs=(),
        provider="",
        version="",
        sandboxes=NO_SANDBOXES,
    )


def test_a_host_is_all_that_was_told_of_it() -> None:
    sandbox = {
        "backend": "landlock",
        "protectsSubpaths": "soft",
        "denial": "exact",
        "weaknesses": ["ptrace"],
        "reason": "no bubblewrap",
    }
    told = {
        "shell": {"name": "zsh", "path": "/bin/zsh"},
        "executorVersion": "1.2",
        "providerId": "here",
        "cwd": "file:///work",
        "userHomeDir": "file:///root",
        "temporaryDirectories": ["file:///tmp", "file://elsewhere/tmp"],
        "tempDir": "file:///var/tmp",
        "capabilities": {
            "holdfast": {"version": 1, "features": ["list"], "sandbox": sandbox, "durable": True}
        },
    }

    assert host_info(msgspec.convert(told, EnvironmentInfo)) == HostInfo(
        shell="/bin/zsh",
        cwd="/work",
        home="/root",
        temp="/var/tmp",
        temp_dirs=("/tmp",),
        provider="here",
        version="1.2",
        sandboxes=Guarantees(
            SandboxBackendName.LANDLOCK,
            Protection.SOFT,
            exact=True,
            weaknesses=("ptrace",),
            reason="no bubblewrap",
        ),
        durable=True,
    )


@pytest.mark.parametrize("sandbox", [{}, {"backend": "magic"}, {"backend": None}])
def test_sandboxes_in_words_that_nobody_knows_are_none(sandbox: dict[str, Any]) -> None:
    told = EnvironmentInfo(
        shell=ShellInfo("sh", "/bin/sh"),
        capabilities=Capabilities(holdfast=Extensions(sandbox=msgspec.convert(sandbox, Sandboxes))),
    )

    assert host_info(told).sandboxes == NO_SANDBOXES
