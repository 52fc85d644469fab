"""What a process is asked for with, of servers that have more or less."""

from __future__ import annotations

import pytest

from holdfast.client.asking import start_params
from holdfast.errors import BadRequest, Unsupported
from holdfast.model import PLAIN, ProcessTerms, Size, Spec
from holdfast.place import UNNAMED, Naming
from holdfast.protocol.session import FEATURES
from holdfast.protocol.start import RecordParams
from holdfast.recordings import HostRecording
from holdfast.sandbox import Sandbox


def spec(terms: ProcessTerms = PLAIN, record: HostRecording | None = None) -> Spec:
    return Spec(argv=["true"], cwd="/", env={}, terminal=Size(), terms=terms, record=record)


def test_a_recording_is_told_as_it_is() -> None:
    record = HostRecording("/a b.cast", True, 5000, Sandbox.read_only().at("/"))

    told = start_params(spec(record=record), "p", UNNAMED, FEATURES, window=0).record

    assert isinstance(told, RecordParams)
    assert (told.path, told.input, told.max_bytes) == ("file:///a%20b.cast", True, 5000)
    assert told.sandbox is not None


@pytest.mark.parametrize(
    ("asked", "naming", "feature"),
    [
        (spec(record=HostRecording("/a.cast")), UNNAMED, "record"),
        (spec(ProcessTerms(timeout=1.0)), UNNAMED, "timeout"),
        (spec(ProcessTerms(output=1, truncate=True)), UNNAMED, "truncateOutput"),
        (spec(), Naming(keep=True), "keep"),
    ],
)
def test_what_a_server_does_not_have_is_not_left_out_in_silence(
    asked: Spec, naming: Naming, feature: str
) -> None:
    features = [name for name in FEATURES if name != feature]

    with pytest.raises(Unsupported, match=feature):
        start_params(asked, "p", naming, features, window=0)


def test_a_number_that_is_too_large_is_refused() -> None:
    with pytest.raises(BadRequest, match="larger than the protocol has room for"):
        start_params(spec(), "p", Naming(retain=1 << 64), FEATURES, window=0)
