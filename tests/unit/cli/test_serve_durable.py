"""Whether processes can outlive the server, as far as that is decided before anybody forks."""

from __future__ import annotations

import resource

import pytest

from holdfast.cli.serve_durable import NotDurable, begin
from holdfast.config import EngineLimits
from holdfast.server.listen import Listen, Stdio, TcpListen

ANYWHERE: list[Listen] = [TcpListen("127.0.0.1", 0)]


def test_who_wants_no_keeper_gets_none() -> None:
    assert begin("off", ANYWHERE, EngineLimits(), None) is None


def test_a_client_on_standard_input_ends_with_its_server() -> None:
    """So nothing could come back to what would be left."""
    where = [*ANYWHERE, Stdio()]

    assert begin("auto", where, EngineLimits(), None) is None
    with pytest.raises(NotDurable, match="standard input"):
        begin("on", where, EngineLimits(), None)


def test_a_host_that_cannot_do_it_is_found_out() -> None:
    """The arena is a file to the system, which may limit the size of files."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        assert begin("auto", ANYWHERE, EngineLimits(), None) is None
        with pytest.raises(NotDurable, match="cannot outlive the server: "):
            begin("on", ANYWHERE, EngineLimits(), None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
