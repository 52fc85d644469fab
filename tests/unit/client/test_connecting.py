"""The channel that an address asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.client.address import Program, Tcp, Unix
from holdfast.client.channel import NoConnection
from holdfast.client.connecting import connect


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (Tcp("127.0.0.1", 1), "Connection refused"),
        (Unix("/no/such/socket"), "No such file or directory"),
        (Program(("/no/such/program",)), "/no/such/program: No such file or directory"),
    ],
    ids=["tcp", "unix", "program"],
)
async def test_each_kind_says_why_there_is_none(address: Tcp | Unix | Program, reason: str) -> None:
    with pytest.raises(NoConnection, match=reason):
        await connect(address, token=None, patience=10.0)


async def test_a_file_that_is_no_socket_is_no_server(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(NoConnection, match="Connection refused"):
        await connect(Unix(str(tmp_path / "file")), token=None, patience=10.0)
