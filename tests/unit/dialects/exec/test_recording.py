"""What a client asks for when it has a terminal recorded, as the engine is told it."""

from __future__ import annotations

import pytest

from holdfast.dialects.exec.recording import recording_of
from holdfast.errors import BadRequest, Forbidden
from holdfast.principal import Grant, Principal
from holdfast.protocol.start import RecordParams
from holdfast.recordings import RECORDING_MOST, HostRecording
from tests.fakes.exec_talk import ready


async def test_a_recording_has_a_bound_if_nobody_says_one() -> None:
    talk = (await ready()).talk

    assert recording_of(talk, RecordParams("file:///a/../b.cast")) == HostRecording("/b.cast")
    assert recording_of(talk, RecordParams("/b", True, 1 << 63)) == HostRecording("/b", True, 1 << 62)
    assert HostRecording("/b").max_bytes == RECORDING_MOST


async def test_a_recording_has_room_for_its_end() -> None:
    with pytest.raises(BadRequest, match="must be at least 1024"):
        recording_of((await ready()).talk, RecordParams("/b", max_bytes=1023))


async def test_who_may_not_write_files_may_not_record() -> None:
    scene = await ready()
    scene.client.principal = Principal("p", grant=Grant(methods=("process/*",)))

    with pytest.raises(Forbidden, match="fs/writeFile"):
        recording_of(scene.talk, RecordParams("/b"))
