"""What a process does at this moment, to the wire and back."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.inspection import Inspection
from holdfast.protocol.inspecting import INSPECT, inspected, read_inspected


@pytest.mark.parametrize(
    "found", [Inspection(None), Inspection(waiting_for_input=True), Inspection(False, True, False)]
)
def test_what_was_seen_gets_to_the_client_as_it_is(found: Inspection) -> None:
    """That it is not known is a third answer, and not the second."""
    text = msgspec.json.encode(inspected(found))

    assert read_inspected(INSPECT.read(text)) == found
