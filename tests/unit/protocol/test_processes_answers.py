"""The answers of the exec dialect, as they are written."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec import UNSET

from holdfast.model import Kind, Stream
from holdfast.protocol.processes import (
    ListResult,
    OutputChunk,
    ProcessExited,
    ReadResult,
    TerminateResult,
    WaitResult,
    WireDenial,
    WireOutcome,
    WireOutputGap,
    WireUsage,
    WriteResult,
)
from holdfast.protocol.session import (
    Capabilities,
    CloseResult,
    EnvironmentInfo,
    Extensions,
    InitializeResult,
    Sandboxes,
    ShellInfo,
    StatusResult,
)
from holdfast.protocol.shapes import Nothing, Shape
from holdfast.protocol.start import StartResult

INFO = EnvironmentInfo(
    shell=ShellInfo("bash", "/bin/bash"),
    executor_version="1",
    provider_id="sha256:0",
    cwd="file:///",
    user_home_dir="file:///root",
    platform_os="linux",
    prepend_path_dirs=[],
    temporary_directories=[],
    temp_dir="file:///tmp",
    capabilities=Capabilities(),
)
CAPABILITIES = [
    *("networkProxyLaunch", "networkProxyReviewDomains", "credentialMasking"),
    *("credentialMaskingCustomProviders", "capabilityDiscoverySandbox", "fsWatchMissing"),
    *("capabilityDiscoveryV2", "environmentConfigRead", "httpHeaderEnvVars", "sandboxedFileStreaming"),
    *("fileWriteStreaming", "shellSnapshotV2", "windowsMxc", "linuxRootWritePreservesDevices"),
    "linuxApprovedRootWritePreservesRestrictions",
]


def test_results_have_their_members_in_the_order_of_the_reference() -> None:
    result = json.loads(msgspec.json.encode(InitializeResult("s", INFO)))

    assert list(result) == ["sessionId", "environmentInfo"]
    assert list(result["environmentInfo"].items()) == [
        ("shell", {"name": "bash", "path": "/bin/bash"}),
        ("executorVersion", "1"),
        ("providerId", "sha256:0"),
        ("cwd", "file:///"),
        ("userHomeDir", "file:///root"),
        ("platformOs", "linux"),
        ("prependPathDirs", []),
        ("temporaryDirectories", []),
        ("tempDir", "file:///tmp"),
        ("capabilities", dict.fromkeys(CAPABILITIES, False)),
    ]


def test_a_home_that_nobody_knows_is_left_out() -> None:
    info = msgspec.structs.replace(INFO, user_home_dir=UNSET)

    assert "userHomeDir" not in json.loads(msgspec.json.encode(info))


def test_what_goes_beyond_the_protocol_is_announced_behind_it() -> None:
    sandboxes = Sandboxes("landlock", "landlock", "soft", "exact", ["w"], "r")
    capabilities = Capabilities(holdfast=Extensions(1, ["list"], tree_exact=True, sandbox=sandboxes))

    written = json.loads(msgspec.json.encode(capabilities))

    assert written == {
        **dict.fromkeys(CAPABILITIES, False),
        "holdfast": {
            "version": 1,
            "features": ["list"],
            "treeExact": True,
            "sandbox": {
                "backend": "landlock",
                "filesystem": "landlock",
                "protectsSubpaths": "soft",
                "denial": "exact",
                "weaknesses": ["w"],
                "reason": "r",
            },
            "durable": False,
        },
    }
    assert list(written)[-1] == "holdfast"


OUTCOME = WireOutcome(Kind.OUTPUT_LIMIT.value, None, "SIGKILL", "limit", "more than 5 bytes")
OUTCOME_TEXT = (
    b'{"kind":"outputLimit","exitCode":null,"signal":"SIGKILL","by":"limit","detail":"more than 5 bytes"}'
)
USAGE = WireUsage(1, 2, 2**64 - 1)
USAGE_TEXT = b'{"userMs":1,"systemMs":2,"maxRssBytes":18446744073709551615}'


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (StatusResult(), b'{"status":"ready"}'),
        (StartResult("p"), b'{"processId":"p","sandboxType":"none"}'),
        (
            StartResult("p", existing=False, limits={"memoryBytes": "cgroup"}),
            b'{"processId":"p","sandboxType":"none","existing":false,"limits":{"memoryBytes":"cgroup"}}',
        ),
        (WriteResult("accepted"), b'{"status":"accepted"}'),
        (
            TerminateResult(running=True, survivors=[], tree_exact=True),
            b'{"running":true,"survivors":[],"treeExact":true}',
        ),
        (
            TerminateResult(running=False, survivors=[7], tree_exact=False),
            b'{"running":false,"survivors":[7],"treeExact":false}',
        ),
        (CloseResult([7]), b'{"survivors":[7]}'),
        (ListResult([]), b'{"processes":[]}'),
        (ListResult([], more=True), b'{"processes":[],"more":true}'),
        (OUTCOME, OUTCOME_TEXT),
        (USAGE, USAGE_TEXT),
        (
            WaitResult(exited=False, closed=False),
            b'{"exited":false,"exitCode":null,"outcome":null,"usage":null,"heldBy":[],"closed":false}',
        ),
        (
            WaitResult(exited=True, exit_code=137, outcome=OUTCOME, usage=USAGE, held_by=[5, 6], closed=True),
            b'{"exited":true,"exitCode":137,"outcome":'
            + OUTCOME_TEXT
            + b',"usage":'
            + USAGE_TEXT
            + b',"heldBy":[5,6],"closed":true}',
        ),
        (
            WaitResult(
                exited=True,
                closed=True,
                sandbox_denied=True,
                denials=[WireDenial("open", "/x", 1)],
                denial="exact",
            ),
            b'{"exited":true,"exitCode":null,"outcome":null,"usage":null,"heldBy":[],"closed":true,'
            b'"sandboxDenied":true,"denials":[{"op":"open","path":"/x","count":1}],"denial":"exact"}',
        ),
        (
            WaitResult(exited=True, exit_code=0, closed=True, dropped_bytes=7),
            b'{"exited":true,"exitCode":0,"outcome":null,"usage":null,"heldBy":[],"closed":true,"droppedBytes":7}',
        ),
        (WireOutputGap(1, 3, 70), b'{"fromSeq":1,"toSeq":3,"bytes":70}'),
        (WireOutputGap(1, 3, None), b'{"fromSeq":1,"toSeq":3,"bytes":null}'),
        (Nothing(), b"{}"),
    ],
)
def test_a_result_is_written_like_that_of_the_reference(result: Shape, text: bytes) -> None:
    """Or, where the reference has none, as the page of the dialect says."""
    assert msgspec.json.encode(result) == text


@pytest.mark.parametrize(
    ("told", "members"),
    [
        (
            ReadResult(chunks=[], next_seq=1, exited=False, closed=False),
            {"gap", "outcome", "usage", "heldBy", "denials", "denial", "droppedBytes"},
        ),
        (ProcessExited("p", 1, 0), {"outcome", "usage", "heldBy", "denials", "denial", "droppedBytes"}),
    ],
)
def test_what_only_the_extensions_know_may_be_absent(told: Shape, members: set[str]) -> None:
    """Bytes are put together elsewhere; clients are generated from these shapes."""
    fields = {field.encode_name for field in msgspec.structs.fields(told)}

    assert fields - json.loads(msgspec.json.encode(told)).keys() == members


def test_the_words_for_streams_are_those_of_the_protocol() -> None:
    chunk = OutputChunk(1, Stream.PTY, "aGk=")

    assert msgspec.json.encode(chunk) == b'{"seq":1,"stream":"pty","chunk":"aGk="}'
