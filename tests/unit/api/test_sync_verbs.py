"""What programs without an event loop ask of a process."""

from __future__ import annotations

import pytest

from holdfast import PIPE, Inspection, WaitTimedOut, sync
from tests.fakes.process import nothing_left_open


def test_a_process_says_that_it_waits_for_input() -> None:
    with nothing_left_open(), sync.local() as host:
        handle = host.start(["cat"], stdin=PIPE, name="p")
        while not (found := handle.inspect()).waiting_for_input:
            pass
        (listed,) = host.processes(inspect=True)

    assert found == Inspection(waiting_for_input=True)
    assert listed.waiting_for_input is True


def test_a_program_waits_until_a_process_is_ready() -> None:
    with nothing_left_open(), sync.local() as host:
        handle = host.start(["sh", "-c", "echo ready; exec cat"], stdin=PIPE)

        assert handle.wait_for(output="ready").line == "ready"
        with pytest.raises(WaitTimedOut):
            handle.wait_for(output="never", timeout=0)


def test_output_is_read_by_its_place() -> None:
    with sync.local() as host:
        handle = host.start(["printf", "0123456789"])
        handle.wait()

        found = handle.read_range("stdout", offset=-4, length=2)

    assert (found.data, found.offset, found.next, found.total) == (b"67", 6, 8, 10)
