"""A server as a backend: what is asked for, and what comes of it; ``tests/contract`` has the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.allowance import Allowance
from holdfast.client.calls import Within
from holdfast.client.remote import RemoteBackend
from holdfast.errors import (
    BadRequest,
    Fault,
    LinkLost,
    NameTaken,
    SpawnFailed,
    UnknownProcess,
    Unsupported,
)
from holdfast.model import CurrentUsage, EnvironmentPolicy, Inherit, Limits, ProcessTerms, Size, Spec
from holdfast.place import Naming
from holdfast.sandbox import Sandbox
from holdfast.users import User
from tests.fakes.following import Witness, chunk, page, scene
from tests.fakes.peer import FEATURES, Message, Talk, info, peer
from tests.fakes.process import command
from tests.fakes.remote import background, ended, far
from tests.fakes.server import eventually

ALL = (
    *FEATURES,
    "drain",
    "idleTimeout",
    "keep",
    "limits",
    "outputLimit",
    "retainBytes",
    "size",
    "timeout",
    "truncateOutput",
    "user",
    "wait",
    "window",
)
LISTED: Message = {
    "processId": "k",
    "argv": ["x"],
    "cwd": "file:///",
    "tty": False,
    "startedAtMs": 1000,
    "state": "running",
    "pid": 9,
    "exitCode": None,
    "outcome": None,
    "nextSeq": 4,
    "retainedBytes": 0,
    "kept": True,
}


def spec(**more: Any) -> Spec:
    return Spec(**{"argv": ("a", "b"), "cwd": "/w d", "env": {}, **more})


async def asked_for(backend: RemoteBackend, talk: Talk, wanted: Spec, **options: Any) -> Message:
    starting = background(backend.start(wanted, Naming(**options)))
    asked = await talk.hear("process/start")
    talk.answer(asked, {"processId": asked["params"]["processId"], "pid": 3})
    assert (await starting).pid == 3
    params: Message = asked["params"]
    return params


# What is asked for.


async def test_a_server_of_others_is_asked_for_what_the_protocol_has() -> None:
    async with peer() as server, far(server, "none") as (backend, talk):
        params = await asked_for(backend, talk, spec(env={"A": "1"}, stdin=True, arg0="z"), name="p")

        assert params == {
            "processId": "p",
            "argv": ["a", "b"],
            "cwd": "file:///w%20d",
            "env": {"A": "1"},
            "tty": False,
            "pipeStdin": True,
            "arg0": "z",
        }


async def test_everything_that_can_be_asked_for_is() -> None:
    wanted = spec(
        env={"A": "1", "GONE": None},
        env_policy=EnvironmentPolicy(
            inherit=Inherit.CORE,
            ignore_default_excludes=True,
            exclude=("X*",),
            set=(("B", "2"), ("GONE", "3")),
            include_only=("P*",),
        ),
        terminal=Size(5, 6),
        sandbox=Sandbox(None, network=False, cwd="/"),
        terms=ProcessTerms(
            timeout=1.5,
            idle_timeout=0.0001,
            grace=2,
            output=10,
            drain=0.5,
            limits=Limits(memory=1, cpu=0.2, processes=3, files=4),
            truncate=True,
        ),
        user=User("bob"),
    )
    async with peer() as server, far(server, *ALL, window=77) as (backend, talk):
        params = await asked_for(backend, talk, wanted, name="p", keep=True, retain=9)

        assert params["sandbox"]["permissions"]["network"] == "restricted"
        del params["sandbox"]
        policy = params.pop("envPolicy")
        assert policy["inherit"] == "core"
        assert policy["exclude"] == ["X*", "GONE"]
        assert (policy["set"], policy["includeOnly"]) == ({"B": "2"}, ["P*"])
        assert params == {
            "processId": "p",
            "argv": ["a", "b"],
            "cwd": "file:///w%20d",
            "env": {"A": "1"},
            "tty": True,
            "size": {"rows": 5, "cols": 6},
            "idempotent": True,
            "window": 77,
            "timeoutMs": 1500,
            "idleTimeoutMs": 1,
            "graceMs": 2000,
            "outputBytesLimit": 10,
            "truncateOutput": True,
            "drainMs": 500,
            "limits": {"memoryBytes": 1, "cpuSeconds": 1, "processes": 3, "openFiles": 4},
            "retainBytes": 9,
            "keep": True,
            "user": "bob",
        }


@pytest.mark.parametrize(
    "wanted",
    [
        ProcessTerms(timeout=1),
        ProcessTerms(idle_timeout=1),
        ProcessTerms(output=1),
        ProcessTerms(limits=Limits(files=3)),
    ],
)
async def test_what_a_server_cannot_do_is_never_left_out_silently(wanted: ProcessTerms) -> None:
    async with peer() as server, far(server) as (backend, _):
        with pytest.raises(Unsupported):
            await backend.start(spec(terms=wanted))
        with pytest.raises(Unsupported):
            await backend.start(spec(), Naming(keep=True))
        with pytest.raises(Unsupported, match="`user`"):
            await backend.start(spec(user=User("bob")))


async def test_bytes_that_are_no_text_cannot_be_told() -> None:
    async with peer() as server, far(server) as (backend, _):
        with pytest.raises(BadRequest):
            await backend.start(spec(argv=("\udcff",)), Naming(name="p"))

        assert not backend._processes


def test_a_url_that_names_no_server_is_refused() -> None:
    with pytest.raises(BadRequest):
        RemoteBackend("nowhere")


# Starting.


async def test_names_are_made_up_if_there_are_none() -> None:
    async with peer() as server, far(server) as (backend, talk):
        names = {(await asked_for(backend, talk, spec()))["processId"] for _ in range(2)}

        assert len(names) == 2


async def test_a_name_that_is_taken_is_refused() -> None:
    async with scene() as s:
        with pytest.raises(NameTaken):
            await s.backend.start(command("x"), Naming(name="p"))
        starting = background(s.backend.start(command("x"), Naming(name="q")))
        s.talk.refuse(await s.talk.hear("process/start"), -32600, "process q already exists")
        with pytest.raises(NameTaken):
            await starting

        assert set(s.backend._processes) == {"p"}


async def test_a_start_that_failed_says_why() -> None:
    async with peer() as server, far(server) as (backend, talk):
        for data in ({"fault": "program", "subject": "a", "reason": "No such file", "errno": 2}, None):
            starting = background(backend.start(spec()))
            asked = await talk.hear("process/start")
            talk.refuse(asked, -32603, "No such file or directory (os error 2)", data)

            with pytest.raises(SpawnFailed) as caught:
                await starting
            assert (caught.value.fault, caught.value.subject, caught.value.number) == (Fault.PROGRAM, "a", 2)


async def test_a_start_over_a_break_is_asked_for_again() -> None:
    async with peer() as server, far(server) as (backend, talk):
        starting = background(backend.start(spec(), Naming(name="p")))
        first = await talk.hear("process/start")
        talk.abort()
        again = await server.welcome()
        second = await again.hear("process/start")
        again.answer(second, {"processId": "p", "existing": True, "pid": 3})
        process = await starting
        # It may have spoken to the connection that broke.
        asked = await again.hear("process/read")

        assert first["params"] == second["params"]
        assert (process.pid, asked["params"]["afterSeq"]) == (3, 0)


async def test_a_server_that_cannot_be_asked_twice_may_have_it_already() -> None:
    """Nobody else can have guessed the name."""
    async with peer() as server, far(server, "list") as (backend, talk):
        starting = background(backend.start(spec()))
        asked = await talk.hear("process/start")
        talk.abort()
        again = await server.welcome("s1", "list")
        name = asked["params"]["processId"]
        again.refuse(await again.hear("process/start"), -32600, f"process {name} already exists")
        process = await starting

        assert (process.name, process.pid) == (name, None)


async def test_all_windows_together_are_bounded_and_given_back() -> None:
    """However many processes nobody reads: the servers of the last of them send a piece, and wait."""
    total = 64 << 20
    async with peer() as server, far(server, *ALL, ahead=Allowance(total)) as (backend, talk):
        windows = [(await asked_for(backend, talk, spec()))["window"] for _ in range(300)]
        assert windows[0] == 4 << 20
        assert windows[-1] == 1
        assert sum(windows) <= total + len(windows)

        starting = background(backend.start(spec()))
        talk.refuse(await talk.hear("process/start"), -32603, "no (os error 2)")
        with pytest.raises(SpawnFailed):
            await starting
        for process in list(backend._processes.values()):
            talk.tell("process/exited", processId=process.name, seq=1, exitCode=0)
            talk.tell("process/closed", processId=process.name, seq=2)
        await eventually(lambda: not backend._processes)

        assert (await asked_for(backend, talk, spec()))["window"] == 4 << 20


async def test_what_is_kept_waits_on_the_server_and_not_here() -> None:
    async with peer() as server, far(server, *ALL, ahead=Allowance(0)) as (backend, talk):
        assert (await asked_for(backend, talk, spec(), keep=True))["window"] == 4 << 20


# Finding.


async def test_one_of_ours_is_found_without_asking() -> None:
    async with scene() as s:
        assert await s.backend.find("p") is s.process


async def test_one_that_is_kept_is_found_and_can_be_watched() -> None:
    async with peer() as server, far(server) as (backend, talk):
        finding = background(backend.find("k"))
        talk.answer(await talk.hear("process/list"), {"processes": [LISTED]})
        process = await finding
        witness = Witness()
        process.watch(witness)
        asked = await talk.hear("process/read")
        talk.answer(asked, page(chunk(4, b"news"), next_seq=5))
        await witness.until("stdout", b"news")

        assert (process.pid, asked["params"]["afterSeq"]) == (9, 3)


@pytest.mark.parametrize(("kept", "within"), [(True, Within.ANY), (False, Within.OWN)])
async def test_what_is_found_means_the_same_as_long_as_its_session_or_for_ever(
    kept: bool,  # noqa: FBT001
    within: Within,
) -> None:
    async with peer() as server, far(server) as (backend, talk):
        finding = background(backend.find("k"))
        talk.answer(await talk.hear("process/list"), {"processes": [{**LISTED, "kept": kept}]})

        assert (await finding).within is within


async def test_one_that_is_not_there_is_not_found() -> None:
    async with peer() as server, far(server) as (backend, talk):
        finding = background(backend.find("nobody"))
        talk.answer(await talk.hear("process/list"), {"processes": [LISTED]})

        with pytest.raises(UnknownProcess):
            await finding


async def test_a_list_needs_a_server_that_has_one() -> None:
    async with peer() as server, far(server, "none") as (backend, _):
        with pytest.raises(Unsupported):
            await backend.list()


async def test_a_list_is_what_the_server_says() -> None:
    async with peer() as server, far(server) as (backend, talk):
        listing = background(backend.list())
        talk.answer(await talk.hear("process/list"), {"processes": [LISTED]})

        assert [(each.name, each.kept, each.started) for each in await listing] == [("k", True, 1.0)]


USED = {
    "processId": "k",
    "name": "web",
    "cpuMs": 30,
    "residentBytes": 4096,
    "processes": 2,
    "outputBytes": 7,
    "ageMs": 50,
}


async def test_what_processes_use_needs_a_server_that_tells_it() -> None:
    async with peer() as server, far(server, "list") as (backend, _):
        with pytest.raises(Unsupported, match="usage of processes"):
            await backend.usage()


@pytest.mark.parametrize("names", [None, ["k", "l"]])
async def test_what_processes_use_is_what_the_server_says(names: list[str] | None) -> None:
    async with peer() as server, far(server, "processUsage") as (backend, talk):
        asking = background(backend.usage(names))
        asked = await talk.hear("process/usage")
        talk.answer(asked, {"processes": [USED]})

        assert list(await asking) == [CurrentUsage("web", "k", 30_000, 4096, 2, 7, 0.05)]
        assert asked["params"].get("names") == names


async def test_a_list_that_makes_no_sense_is_an_error_of_ours() -> None:
    async with peer() as server, far(server) as (backend, talk):
        listing = background(backend.list())
        talk.answer(await talk.hear("process/list"), {"processes": [{**LISTED, "cwd": "http://x"}]})
        with pytest.raises(LinkLost, match="makes no sense"):
            await listing

        listing = background(backend.list())
        asked = await talk.hear("process/list")
        long = json.dumps([{**LISTED, "startedAtMs": 10**400}])
        talk.say(f'{{"id":{asked["id"]},"result":{{"processes":{long}}}}}')
        with pytest.raises(LinkLost, match="makes no sense"):
            await listing


async def test_a_host_that_makes_no_sense_is_none() -> None:
    async with peer() as server:
        backend = RemoteBackend(server.url)
        opening = background(backend.open())
        await server.welcome("s1", about={**info(), "cwd": "http://x"})

        with pytest.raises(LinkLost, match="makes no sense"):
            await opening
        await ended(backend.aclose(), server)


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    "message",
    [
        b'{"method":"process/exited","params":{"processId":"\xff","seq":1}}',
        b'{"method":"process/exited","params":{"processId":"p","seq":1,"x":' + DEEP + b"}}",
        b'{"id":1,"result":' + DEEP + b"}",
        b'{"id":1,"error":{"code":1,"message":"","data":' + DEEP + b"}}",
    ],
    ids=["not UTF-8", "deep params", "deep result", "deep data"],
)
async def test_a_message_that_is_none_ends_the_connection(
    message: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """By our own decision: whatever else the parser raises would be an error of this program in its log."""
    async with scene() as s:
        s.talk.say(message)
        await s.talk.left()
        s.talk = await s.server.welcome("s1", *FEATURES)

        assert caplog.records == []


# The end.


async def test_a_process_that_is_over_is_forgotten_here() -> None:
    async with scene() as s:
        s.exit(1)
        s.close(2)
        await s.witness.until("closed")

        assert not s.backend._processes
        assert not s.backend._keys


async def test_what_the_host_is_like_is_known_once_it_is_open() -> None:
    async with peer() as server, far(server) as (backend, _):
        assert (backend.info.shell, backend.info.cwd) == ("/bin/sh", "/work")
        assert backend.files is backend.files
        assert backend.http is backend.http


async def test_a_closed_backend_starts_nothing() -> None:
    async with peer() as server, far(server) as (backend, talk):
        closing = background(backend.aclose())
        talk.answer(await talk.hear("session/close"), {})
        await talk.left()
        await closing

        with pytest.raises(LinkLost):
            await backend.start(spec())
