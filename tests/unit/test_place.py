"""What hosts ask of a place."""

from __future__ import annotations

from holdfast.api.embedded import Embedded
from holdfast.api.embedded_process import EmbeddedProcess
from holdfast.client.process import RemoteProcess
from holdfast.client.remote import RemoteBackend
from holdfast.place import NamedProcess, Place


def test_the_engine_in_this_program_is_a_place() -> None:
    """The type checker says so; here the names are held against it once more."""
    place: type[Place] = Embedded
    process: type[NamedProcess] = EmbeddedProcess

    assert {"start", "find", "describe", "list", "aclose"} <= set(dir(place))
    assert {"watch", "read", "wait", "write", "remove"} <= set(dir(process))


def test_a_server_is_a_place() -> None:
    place: type[Place] = RemoteBackend
    process: type[NamedProcess] = RemoteProcess

    assert {"start", "find", "describe", "list", "aclose"} <= set(dir(place))
    assert {"watch", "read", "wait", "write", "remove"} <= set(dir(process))
