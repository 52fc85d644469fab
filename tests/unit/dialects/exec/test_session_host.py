"""What a client is told of the host, and of what its sandboxes are worth."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.protocol.session import FEATURES
from holdfast.sandbox import NO_SANDBOXES, Guarantees, Protection, SandboxBackendName
from holdfast.value import replace
from tests.fakes.dialects import HOST
from tests.fakes.exec_talk import ExecTalk

PLAIN = [name for name in FEATURES if name != "snapshot"]
"""What a server announces that does not know what terminals show."""


async def test_initialize_tells_the_session_and_the_host() -> None:
    scene = ExecTalk()

    result = await scene.call("initialize", {"clientName": ""})

    assert result["sessionId"] == scene.talk.session.key
    capabilities = result["environmentInfo"].pop("capabilities")
    assert result["environmentInfo"] == {
        "shell": {"name": "bash", "path": "/bin/bash"},
        "executorVersion": "0.166.0",
        "providerId": "sha256:00",
        "cwd": "file:///srv/a%20b",
        "userHomeDir": "file:///home/%C3%A9",
        "platformOs": "linux",
        "prependPathDirs": [],
        "temporaryDirectories": [],
        "tempDir": "file:///tmp",
    }
    extensions = capabilities.pop("holdfast")
    assert extensions.pop("sandbox")["backend"] is None
    assert extensions == {"version": 1, "features": PLAIN, "treeExact": True, "durable": False}
    assert {name for name, offered in capabilities.items() if offered} == {
        "capabilityDiscoverySandbox",
        "capabilityDiscoveryV2",
        "environmentConfigRead",
        "fileWriteStreaming",
        "fsWatchMissing",
        "httpHeaderEnvVars",
        "sandboxedFileStreaming",
        "shellSnapshotV2",
    }


async def test_the_host_is_told_the_same_later() -> None:
    scene = ExecTalk()
    first = await scene.call("initialize", {"clientName": "o"})

    assert await scene.call("environment/info") == first["environmentInfo"]
    assert await scene.call("environment/status", {}) == {"status": "ready"}


async def test_only_who_knows_of_holdfast_is_told_its_version() -> None:
    """A client of the reference compares it with its own, and leaves out what older servers lack."""
    plain, ours = ExecTalk(), ExecTalk()
    told = await plain.call("initialize", {"clientName": "o"})
    again = await ours.call("initialize", {"clientName": "o", "holdfast": 1})

    versions = [each["environmentInfo"]["executorVersion"] for each in (told, again)]
    assert versions == ["0.166.0", "9.9.9"]


def test_every_feature_is_announced_once_and_in_order() -> None:
    """A client looks for a word; two words for one thing would make it look twice."""
    assert sorted(set(FEATURES)) == FEATURES


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (NO_SANDBOXES, {"backend": None, "filesystem": None, "protectsSubpaths": "none", "denial": "guess"}),
        (
            Guarantees(SandboxBackendName.BUBBLEWRAP, Protection.HARD, exact=True, filesystem="mount"),
            {"backend": "bubblewrap", "filesystem": "mount", "protectsSubpaths": "hard", "denial": "exact"},
        ),
        (
            Guarantees(
                SandboxBackendName.LANDLOCK, Protection.SOFT, exact=True, weaknesses=("w", "v"), reason="r"
            ),
            {"backend": "landlock", "filesystem": "landlock", "protectsSubpaths": "soft", "denial": "exact"},
        ),
        (
            Guarantees(SandboxBackendName.LANDLOCK, Protection.NONE, exact=False),
            {"backend": "landlock", "filesystem": "landlock", "protectsSubpaths": "none", "denial": "guess"},
        ),
        (
            Guarantees("toy", Protection.HARD, exact=False),
            {"backend": "toy", "filesystem": "toy", "protectsSubpaths": "hard", "denial": "guess"},
        ),
    ],
    ids=["none", "bubblewrap", "landlock", "landlock without a witness", "another one"],
)
async def test_what_sandboxes_are_worth_is_told_before_anybody_asks_for_one(
    found: Guarantees, told: dict[str, Any]
) -> None:
    """A client that needs more than there is can go elsewhere at once."""
    scene = ExecTalk()
    scene.backend.info = replace(HOST, sandboxes=found)

    result = await scene.call("initialize", {"clientName": ""})

    assert result["environmentInfo"]["capabilities"]["holdfast"]["sandbox"] == {
        **told,
        "weaknesses": list(found.weaknesses),
        "reason": found.reason,
    }
