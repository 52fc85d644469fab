"""What programs without an event loop ask of a process."""

from __future__ import annotations

from holdfast import PIPE, Inspection, sync
from tests.fakes.process import nothing_left_open


def test_a_process_says_that_it_waits_for_input() -> None:
    with nothing_left_open(), sync.local() as host:
        handle = host.start(["cat"], stdin=PIPE, name="p")
        while not (found := handle.inspect()).waiting_for_input:
            pass
        (listed,) = host.processes(inspect=True)

    assert found == Inspection(waiting_for_input=True)
    assert listed.waiting_for_input is True
