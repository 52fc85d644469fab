"""What hosts ask of a place."""

from __future__ import annotations

from holdfast.api.embedded import Embedded, EmbeddedProcess
from holdfast.backend import NamedProcess, Place
from holdfast.client.process import RemoteProcess
from holdfast.client.remote import RemoteBackend


def test_the_engine_in_this_program_is_a_place() -> None:
    """The type checker says so; here the names are held against it once more."""
    place: type[Place] = Embedded
    process: type[NamedProcess] = EmbeddedProcess

    assert {"start", "find", "list", "aclose"} <= set(dir(place))
    assert {"watch", "read", "wait", "write"} <= set(dir(process))


def test_a_server_is_a_place() -> None:
    place: type[Place] = RemoteBackend
    process: type[NamedProcess] = RemoteProcess

    assert {"start", "find", "list", "aclose"} <= set(dir(place))
    assert {"watch", "read", "wait", "write"} <= set(dir(process))
