"""The fence around tests that send random paths: it must hold, or a test run costs somebody their files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bench.soaking import fence as mounts
from bench.soaking.gauges import Watched
from tests.fakes import fence
from tests.fakes.client import Refusal, client
from tests.fakes.walled import walled

ROOT = "/own/tree"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "/",
            "/own",
            "/own/tree2",
            "/etc/passwd",
            "//own/tree",
            "/own/tree/..",
            "/own/tree/../tree",
            "/own/./..",
        ),
        *(
            "file:///",
            "file:/own/tree",
            "FILE:///own/tree",
            " file:///etc",
            "\x00file:///etc",
            "fi\nle:///etc",
        ),
        *(
            "file:///own/tree/%2e%2e",
            "file:///own/tree/..",
            "file:///own/tree%2F..%2Fx",
            "file:///own/tree\\..\\x",
        ),
        *("file://localhost/own/tree", "file:own", "http://x/", "c:/x", "/own/tree/%2e%2e"),
    ],
)
def test_a_text_that_may_lead_elsewhere_is_found(text: str) -> None:
    assert list(fence.leaving({"a": [{"path": text}]}, ROOT)) == [text]
    assert list(fence.leaving({text: 1}, ROOT)) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "x/../y",
        "..",
        " /etc",
        "/own/tree",
        "/own/tree/",
        "/own/tree/./a",
        "file:///own/tree/a%20b",
        "%2Fetc",
    ],
)
def test_a_text_that_leads_inside_or_nowhere_is_not(text: str) -> None:
    """A blank before a slash makes it neither a path nor a URI."""
    assert list(fence.leaving([text, 1, None, True, {"x": text}], ROOT)) == []


@pytest.mark.skipif(not mounts.can_fence(), reason="this host lets nobody have mounts of their own")
def test_only_one_directory_can_be_written(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "file").touch()
    attempts = (f"touch {outside}/b", f"rm {outside}/file", f"rmdir {outside}", f"(echo x >{outside}/file)")
    script = "; ".join([f"touch {inside}/a", *attempts, "pwd"])

    ran = subprocess.run(
        [*mounts.COMMAND, str(inside), "sh", "-c", script], capture_output=True, text=True, check=False
    )

    assert ran.stdout == f"{inside}\n"
    assert ran.stderr.count("Read-only file system") == 4
    assert (inside / "a").exists()
    assert (outside / "file").read_bytes() == b""
    assert not (outside / "b").exists()


@pytest.mark.slow
@pytest.mark.parametrize("mounted", [True, False], ids=["mounts", "nobody"])
async def test_a_walled_server_can_write_to_its_directory_only(*, mounted: bool) -> None:
    """Where there are no mounts, the server is somebody who owns nothing else."""
    if mounted and not mounts.can_fence():
        pytest.skip("this host lets nobody have mounts of their own")
    with walled(mounts=mounted) as server:
        (server.base / "mine").touch()
        server.give()
        beside = server.base.parent / "beside"
        async with client(server.url) as talking:
            await talking.call(
                "fs/writeFile", {"path": (server.base / "mine").as_uri(), "dataBase64": "aGk="}
            )
            for path in (beside, Path("/etc/holdfast-is-not-here")):
                with pytest.raises(Refusal, match=r"Read-only file system|Permission denied"):
                    await talking.call("fs/writeFile", {"path": path.as_uri(), "dataBase64": ""})
        written = (server.base / "mine").read_bytes()

    assert written == b"hi"


@pytest.mark.slow
@pytest.mark.skipif(not mounts.can_fence(), reason="this host lets nobody have mounts of their own")
async def test_the_server_of_a_soak_can_write_to_its_directory_only(tmp_path: Path) -> None:
    """Its adversary sends methods that remove files, for half an hour."""
    inside, beside = tmp_path / "in", tmp_path / "beside"
    inside.mkdir()
    with Watched("--listen", "ws://127.0.0.1:0", within=inside) as server:
        async with client(server.read_url()) as talking:
            await talking.call("fs/writeFile", {"path": (inside / "f").as_uri(), "dataBase64": "aGk="})
            with pytest.raises(Refusal, match="Read-only file system"):
                await talking.call("fs/writeFile", {"path": beside.as_uri(), "dataBase64": ""})

    assert (inside / "f").read_bytes() == b"hi"
    assert not beside.exists()
