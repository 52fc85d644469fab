"""A keeper that does not run for a while, as a server sees it."""

from __future__ import annotations

import socket
import threading

from holdfast.host.keeper import KeptForkServer


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
