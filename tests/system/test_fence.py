"""The fence around tests that send random paths: it must hold, or a test run costs somebody their files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.fakes import fence

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


@pytest.mark.skipif(not fence.can_fence(), reason="this host lets nobody have mounts of their own")
def test_only_one_directory_can_be_written(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "file").touch()
    attempts = (f"touch {outside}/b", f"rm {outside}/file", f"rmdir {outside}", f"(echo x >{outside}/file)")
    script = "; ".join([f"touch {inside}/a", *attempts, "pwd"])

    ran = subprocess.run(
        [*fence.COMMAND, str(inside), "sh", "-c", script], capture_output=True, text=True, check=False
    )

    assert ran.stdout == f"{inside}\n"
    assert ran.stderr.count("Read-only file system") == 4
    assert (inside / "a").exists()
    assert (outside / "file").read_bytes() == b""
    assert not (outside / "b").exists()
