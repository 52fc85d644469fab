"""Uses of holdfast without an event loop, as programs write them: checked for types, not run."""

from __future__ import annotations

from typing import assert_type

import holdfast
from holdfast import PIPE, sync


def commands() -> None:
    result = holdfast.run(["ls", "-la"], capture_output=True, check=True)
    assert_type(result, holdfast.Completed[bytes])
    assert_type(result.stdout, bytes)
    assert_type(holdfast.run(["ls"], capture_output=True, text=True).stdout, str)
    assert_type(holdfast.run(["ls"], capture_output=True, encoding="utf-8").stdout, str)
    assert_type(holdfast.run(["ls"]).stdout, bytes | str | None)
    assert_type(holdfast.run(["ls"]).usage, holdfast.Usage | None)


def processes() -> None:
    with sync.connect("unix:///run/holdfast.sock") as host, host.start(["cat"], stdin=PIPE) as handle:
        assert_type(host, sync.Host)
        assert_type(handle, sync.Handle)
        assert handle.stdin is not None
        assert handle.stdout is not None
        handle.stdin.write(b"line\n")
        assert_type(handle.stdout.readline(), bytes)
        handle.stdin.close()
        assert_type(list(handle), list[bytes])
        assert_type([chunk.seq for chunk in handle.chunks()], list[int])
        assert_type(handle.wait(timeout=3.0), holdfast.Outcome)
        assert_type(host.run(["ls"], capture_output=True, name="x", keep=True).stdout, bytes)
        assert_type(host.run("ls", shell=True, capture=holdfast.HeadTail(9, 9), text=True).stdout, str)
        for done in host.map([["ls"]], text=True):
            assert_type(done, holdfast.Completed[str])
        for given in host.map([["ls"]], return_exceptions=True):
            assert_type(given, holdfast.Completed[bytes] | holdfast.HoldfastError)
        for line in host.start(["ls"]).lines():
            assert_type(line, str)
        assert_type(host.files.canonical("/tmp"), str)


def followed(host: sync.Host) -> None:
    with host.events() as events:
        for event in events:
            assert_type(event, holdfast.ProcessEvent)
        assert_type(events.next(timeout=1.0).outcome, holdfast.Outcome | None)


def restricted(host: sync.Host) -> None:
    done = holdfast.run(["ls"], capture_output=True, sandbox=holdfast.Sandbox.read_only())
    assert_type(done.denials, tuple[holdfast.Denial, ...])
    assert_type(host.start(["ls"]).denials, tuple[holdfast.Denial, ...])


def fetched(host: sync.Host) -> None:
    assert_type(host.http.get("http://localhost/").read(), bytes)
    with host.http.request("POST", "http://localhost/", body=b"x") as response:
        assert_type(response.status, int)
        assert_type(list(response), list[bytes])
