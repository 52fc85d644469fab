"""``holdfast cp``: here and to a server."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.fakes.terminal import Call

pytestmark = pytest.mark.slow


def test_a_file_goes_there_and_back(far: Call, tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "a").write_bytes(data)

    there = far("cp", str(tmp_path / "a"), f":{tmp_path}/b")
    back = far("cp", "-o", "json", f":{tmp_path}/b", str(tmp_path / "c"))

    assert there == (0, "", "")
    assert (back.code, json.loads(back.out)) == (0, {"files": 1, "bytes": 3_000_000})
    assert (tmp_path / "c").read_bytes() == data


def test_a_directory_goes_there_with_r(far: Call, tmp_path: Path) -> None:
    (tmp_path / "s" / "t").mkdir(parents=True)
    (tmp_path / "s" / "t" / "f").write_text("x")

    refused = far("cp", str(tmp_path / "s"), f":{tmp_path}/n")
    done = far("cp", "-r", str(tmp_path / "s"), f":{tmp_path}/n")

    assert (refused.code, done.code) == (125, 0)
    assert "copy it with -r" in refused.err
    assert (tmp_path / "n" / "t" / "f").read_text() == "x"


def test_without_a_server_it_is_this_hosts_files(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")

    assert call("cp", f":{tmp_path}/a", f"{tmp_path}/b").code == 0
    assert (tmp_path / "b").read_text() == "x"


def test_one_side_has_to_be_the_servers(call: Call) -> None:
    said = call("cp", "a", "b")

    assert (said.code, said.out) == (125, "")
    assert "put a colon before its path" in said.err


def test_what_the_system_refuses_is_told_with_the_path(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")

    near = call("cp", f":{tmp_path}/a", f"{tmp_path}/no/b")
    far = call("cp", f"{tmp_path}/a", f":{tmp_path}/no/b")

    assert (near.code, far.code) == (125, 125)
    assert f"to {tmp_path}/no/b: No such file or directory\n" in near.err
    assert f"to :{tmp_path}/no/b: No such file or directory\n" in far.err
