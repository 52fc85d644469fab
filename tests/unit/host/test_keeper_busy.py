"""A keeper or fork server that does not run for a while, as a server sees it."""

from __future__ import annotations

import os
import signal
import socket
import threading

from holdfast.host.keeper import KeptForkServer
from holdfast.host.shim import ForkServer
from tests.fakes.process import nothing_left_open


def test_a_keeper_that_is_behind_is_waited_for() -> None:
    """Refusing a start because many others came before it would be no answer."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.setblocking(False)
        count = 0
        try:
            while True:
                ours.send(b"R")
                count += 1
        except BlockingIOError:
            pass  # It is full.
        heard: list[bytes] = []

        def hear() -> None:
            while len(heard) < count + 1:
                heard.append(theirs.recv(16))

        keeper = threading.Thread(target=hear)
        begin = threading.Timer(0.05, keeper.start)
        begin.start()
        KeptForkServer(ours).ready()
        begin.join()
        keeper.join()

    assert heard == [b"R"] * (count + 1)


def test_a_fork_server_that_was_stopped_goes_on_and_no_start_is_refused() -> None:
    """More come at once than its socket has room for."""
    with nothing_left_open():
        fork_server = ForkServer()
        fork_server.open()
        os.kill(fork_server._pid, signal.SIGSTOP)
        try:
            shims = [fork_server._make() for _ in range(600)]

            assert all(shim.is_waiting() for shim in shims)
            for shim in shims:
                shim.close()
        finally:
            fork_server.close()
