"""Whether a host can do what an arena needs."""

from __future__ import annotations

import errno
import os
import resource

import pytest

from holdfast.host import arena_probe, pty
from holdfast.host.arena import size_for


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_this_host_can() -> None:
    before = descriptors()

    assert arena_probe.probe() is None
    assert arena_probe.probe(size_for(1 << 30)) is None

    assert descriptors() == before


@pytest.mark.parametrize("call", ["splice", "sendfile", "memfd_create"])
def test_a_host_that_refuses_a_call_cannot_and_says_why(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, call, refuse)
    before = descriptors()

    assert arena_probe.probe() == "Function not implemented"
    assert descriptors() == before


def test_files_that_may_not_be_so_large_are_found_out() -> None:
    """Else the first output far behind in the arena would fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, hard))
    try:
        assert arena_probe.probe(1 << 30) == "File too large"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_without_terminals_the_rest_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none can be opened none will have to be read."""

    def refuse(*_: object) -> tuple[int, int]:
        raise OSError(errno.ENOENT, "no ptmx")

    monkeypatch.setattr(pty, "open_terminal", refuse)

    assert arena_probe.probe() is None


def test_bytes_that_arrive_otherwise_than_they_were_sent_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    splice = os.splice
    monkeypatch.setattr(os, "splice", lambda *args, **more: splice(*args, **more) - 1)

    assert "pipes and memory" in str(arena_probe.probe())
