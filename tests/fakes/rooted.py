"""A child that runs, with the root of its tree: the shim that watches over it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.host.child import ShimChild
from holdfast.model import Spec
from tests.fakes.fork_server import until
from tests.fakes.process import read_until, started, status


@contextmanager
def rooted(spec: Spec) -> Iterator[tuple[ShimChild, int]]:
    """A child that runs, and the root of its tree."""
    with started(spec) as child:
        yield child, int(status(child.pid)["PPid"])


def said(child: ShimChild) -> list[int]:
    """Numbers that it writes on a line."""
    return [int(word) for word in read_until(child.outputs[0][1], b"\n").split()]


def sleepers(child: ShimChild) -> list[int]:
    """Those whom a shell started to sleep, once they do: their files are set up before their program runs."""
    pids = said(child)
    until(lambda: all(status(pid).get("Name") == "sleep" for pid in pids))
    return pids
