"""Starting a process in the exec dialect: names, refusals, and what may happen meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.dialects.exec.entries import Entry, Notifier
from holdfast.dialects.exec.methods import METHODS
from holdfast.errors import (
    BadRequest,
    Fault,
    NameTaken,
    SandboxUnavailable,
    SpawnFailed,
    StartCancelled,
    StillStarting,
    Unsupported,
)
from holdfast.model import PLAIN, EnvironmentPolicy, Inherit, Limits, ProcessTerms, Size, Spec
from holdfast.users import User
from tests.fakes.dialects import FakeProcess
from tests.fakes.exec_talk import START, ready

NO_SUCH_FILE = SpawnFailed(Fault.PROGRAM, "x", "No such file or directory", number=2)


async def test_a_start_hands_the_request_to_the_backend() -> None:
    scene = await ready(FakeProcess())
    policy = {
        "inherit": "core",
        "ignoreDefaultExcludes": False,
        "exclude": ["B*"],
        "set": {"C": "2", "B": "1"},
        "includeOnly": ["D"],
    }

    result = await scene.call(
        "process/start", {**START, "pipeStdin": True, "arg0": "name", "envPolicy": policy}
    )

    assert result == {"processId": "p", "sandboxType": "none"}
    assert scene.backend.specs == [
        Spec(
            argv=["x"],
            cwd="/tmp",
            env={"A": "1"},
            env_policy=EnvironmentPolicy(Inherit.CORE, False, ("B*",), (("C", "2"), ("B", "1")), ("D",)),
            stdin=True,
            arg0="name",
            name="p",
        )
    ]


async def test_a_start_in_a_terminal_has_the_size_of_the_reference() -> None:
    scene = await ready(FakeProcess())

    await scene.call("process/start", {**START, "tty": True})

    assert scene.backend.specs == [
        Spec(argv=["x"], cwd="/tmp", env={"A": "1"}, terminal=Size(24, 80), name="p")
    ]


async def test_the_user_is_handed_on_as_it_is_spelled() -> None:
    """The host finds out who that is, and whether there is one."""
    assert (await spec_of(user="1000:1000")).user == User("1000:1000")
    assert (await spec_of(user=None)).user is None


# What may end it.

YEAR = 365 * 24 * 3600.0


async def spec_of(**params: Any) -> Spec:
    """What the backend is asked for."""
    scene = await ready(FakeProcess())
    await scene.call("process/start", {**START, **params})
    (spec,) = scene.backend.specs
    return spec


async def test_a_start_without_terms_costs_nothing_for_them() -> None:
    """The same object for all of them: millions of starts have none."""
    assert (await spec_of()).terms is PLAIN
    assert (await spec_of(graceMs=0, limits={}, timeoutMs=None)).terms is PLAIN


@pytest.mark.parametrize(
    ("params", "terms"),
    [
        ({"timeoutMs": 1}, ProcessTerms(timeout=0.001)),
        ({"idleTimeoutMs": 1500}, ProcessTerms(idle_timeout=1.5)),
        ({"graceMs": 1}, ProcessTerms(grace=0.001)),
        ({"drainMs": 0}, ProcessTerms(drain=0.0)),
        ({"drainMs": 1}, ProcessTerms(drain=0.001)),
        ({"outputBytesLimit": 1}, ProcessTerms(output=1)),
        ({"outputBytesLimit": 2**64 - 1}, ProcessTerms(output=2**64 - 1)),
        ({"outputBytesLimit": 1, "truncateOutput": True}, ProcessTerms(output=1, truncate=True)),
        (
            dict.fromkeys(["timeoutMs", "idleTimeoutMs", "graceMs", "drainMs"], 2**64 - 1),
            ProcessTerms(timeout=YEAR, idle_timeout=YEAR, grace=YEAR, drain=YEAR),
        ),
    ],
)
async def test_terms_are_handed_on_in_seconds_and_bytes(params: dict[str, Any], terms: ProcessTerms) -> None:
    """Times beyond all clocks mean the longest that there is."""
    assert (await spec_of(**params)).terms == terms


@pytest.mark.parametrize(("asked", "given"), [(1, 1), (2**62, 2**62), (2**64 - 1, 2**62)])
@pytest.mark.parametrize(
    ("name", "field"),
    [("memoryBytes", "memory"), ("cpuSeconds", "cpu"), ("processes", "processes"), ("openFiles", "files")],
)
async def test_a_limit_is_handed_on_as_far_as_the_kernel_can_count(
    name: str, field: str, asked: int, given: int
) -> None:
    spec = await spec_of(limits={name: asked})

    assert spec.terms == ProcessTerms(limits=Limits(**{field: given}))


async def test_output_is_truncated_at_a_limit_only() -> None:
    scene = await ready()

    error = await scene.refusal("process/start", {**START, "truncateOutput": True})

    assert str(error) == "truncateOutput needs outputBytesLimit"


@pytest.mark.parametrize(
    "field",
    [
        *("timeoutMs", "idleTimeoutMs", "outputBytesLimit"),
        *("limits.memoryBytes", "limits.cpuSeconds", "limits.processes", "limits.openFiles"),
    ],
)
async def test_a_bound_of_nothing_is_refused(field: str) -> None:
    """It would end every process at once; whoever means no bound leaves it out."""
    scene = await ready()
    outer, _, inner = field.partition(".")

    error = await scene.refusal("process/start", {**START, outer: {inner: 0} if inner else 0})

    assert isinstance(error, BadRequest)
    assert (str(error), error.field) == (f"{field} must be at least 1", field)
    assert (scene.backend.specs, scene.talk.session.find("p")) == ([], None)


async def test_the_limits_of_a_process_are_told_with_those_who_keep_them() -> None:
    process = FakeProcess()
    process.limits = {"memory": "cgroup", "cpu": "rlimit", "processes": "sampled", "files": "rlimit"}
    scene = await ready(process)

    result = await scene.call("process/start", START)

    assert result == {
        "processId": "p",
        "sandboxType": "none",
        "limits": {
            "memoryBytes": "cgroup",
            "cpuSeconds": "rlimit",
            "processes": "sampled",
            "openFiles": "rlimit",
        },
    }


# The terminal.


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (50, 132), (65_535, 65_535)])
async def test_a_terminal_may_have_another_size(rows: int, cols: int) -> None:
    spec = await spec_of(tty=True, size={"rows": rows, "cols": cols})

    assert spec.terminal == Size(rows, cols)


@pytest.mark.parametrize(("rows", "cols"), [(0, 1), (1, 0), (0, 0)])
async def test_a_terminal_without_room_for_a_character_is_refused(rows: int, cols: int) -> None:
    scene = await ready()

    error = await scene.refusal("process/start", {**START, "tty": True, "size": {"rows": rows, "cols": cols}})

    assert isinstance(error, BadRequest)
    assert (str(error), error.field) == ("size.rows and size.cols must be at least 1", "size")


async def test_a_size_without_a_terminal_is_refused() -> None:
    """Whoever gives one expects a terminal, and gets none."""
    scene = await ready()

    error = await scene.refusal("process/start", {**START, "size": {"rows": 1, "cols": 1}})

    assert isinstance(error, BadRequest)
    assert (str(error), error.field) == ("size needs a terminal: tty must be true", "size")
    assert scene.backend.specs == []


# What is kept of its output.


@pytest.mark.parametrize(("asked", "kept"), [(None, 10), (0, 1), (1, 1), (11, 11), (2**64 - 1, 2**64 - 1)])
async def test_a_client_may_say_how_much_of_the_output_is_kept(asked: int | None, kept: int) -> None:
    """At least a byte: a process of which nothing is kept could not be read at all."""
    scene = await ready(process := FakeProcess())

    await scene.call("process/start", {**START, "retainBytes": asked})

    assert process.calls == [("retain", kept)]


# The start.


async def test_a_started_process_is_counted_and_watched_and_bounded() -> None:
    process = FakeProcess()
    scene = await ready(process)

    await scene.call("process/start", START)

    assert isinstance(scene.talk.session.find("p"), Entry)
    assert isinstance(process.watcher, Notifier)
    assert process.calls == [("retain", 10)]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"argv": []}, "argv must not be empty"),
        (
            {"argv": [], "cwd": "file://h/x"},
            "cwd URI `file://h/x` is not valid on this exec-server host: 'file://h/x' is invalid on 'linux'",
        ),
        (
            {"cwd": "file:///c:"},
            "cwd URI `file:///C:` is not valid on this exec-server host: 'file:///C:' is invalid on 'linux'",
        ),
    ],
)
async def test_a_start_that_makes_no_sense_is_refused(params: dict[str, Any], words: str) -> None:
    scene = await ready()

    error = await scene.refusal("process/start", {**START, **params})

    assert isinstance(error, BadRequest)
    assert str(error) == words
    assert scene.backend.specs == []


@pytest.mark.parametrize(
    "params",
    [
        {"networkProxy": {"proxy": {}}},
        {"enforceManagedNetwork": True},
    ],
)
async def test_what_this_server_does_not_do_is_never_silently_ignored(params: dict[str, Any]) -> None:
    """A client that asks for confinement must not get a process without it."""
    scene = await ready()

    error = await scene.refusal("process/start", {**START, **params})

    assert isinstance(error, Unsupported)
    assert error.feature == f"`{next(iter(params))}`"
    assert scene.backend.specs == []


READ_ALL = {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}
READ_ONLY = {
    "type": "managed",
    "file_system": {"type": "restricted", "entries": [READ_ALL]},
    "network": "restricted",
}


@pytest.mark.parametrize(
    ("permissions", "kind"),
    [
        ({"type": "disabled"}, "none"),
        ({"type": "external", "network": "restricted"}, "linuxSeccomp"),
        (READ_ONLY, "linuxSeccomp"),
    ],
)
async def test_a_sandbox_is_asked_of_the_backend_and_told(permissions: dict[str, Any], kind: str) -> None:
    """What it means is the matter of its own module."""
    scene = await ready(FakeProcess())
    sandbox = {"permissions": permissions, "windowsSandboxLevel": "disabled"}

    answer = await scene.call("process/start", {**START, "sandbox": sandbox})

    assert answer["sandboxType"] == kind
    (spec,) = scene.backend.specs
    assert (spec.sandbox is not None) == (kind != "none")
    if spec.sandbox is not None:
        assert (spec.sandbox.cwd, spec.sandbox.network) == ("/tmp", False)


async def test_a_sandbox_that_cannot_be_kept_is_refused_and_its_name_is_free() -> None:
    scene = await ready(SandboxUnavailable("no kernel"), FakeProcess())

    error = await scene.refusal("process/start", START)
    await scene.call("process/start", START)

    assert isinstance(error, SandboxUnavailable)


async def test_a_name_in_use_is_refused_before_anything_starts() -> None:
    scene = await ready(FakeProcess())
    await scene.call("process/start", START)

    error = await scene.refusal("process/start", START)

    assert isinstance(error, NameTaken)
    assert len(scene.backend.specs) == 1


async def test_a_failed_start_frees_its_name_at_once() -> None:
    scene = await ready(NO_SUCH_FILE, FakeProcess())

    error = await scene.refusal("process/start", START)
    result = await scene.call("process/start", START)

    assert error is NO_SUCH_FILE
    assert result == {"processId": "p", "sandboxType": "none"}


async def test_while_a_process_starts_others_are_told_so() -> None:
    gate = asyncio.Event()
    scene = await ready(gate, FakeProcess())
    task = await scene.starting()

    read = await scene.refusal("process/read", {"processId": "p"})
    write = await scene.call("process/write", {"processId": "p", "chunk": "", "writeId": "w"})
    signal = await scene.call("process/signal", {"processId": "p", "signal": "interrupt"})
    taken = await scene.refusal("process/start", START)
    gate.set()

    assert isinstance(read, StillStarting)
    assert (write, signal) == ({"status": "starting"}, {})
    assert isinstance(taken, NameTaken)
    assert await task == {"processId": "p", "sandboxType": "none"}


async def test_terminating_a_start_gives_it_up() -> None:
    scene = await ready(asyncio.Event(), FakeProcess())
    task = await scene.starting()

    result = await scene.call("process/terminate", {"processId": "p"})

    assert result == {"running": True, "survivors": [], "treeExact": True}
    with pytest.raises(StartCancelled) as caught:
        await task
    assert caught.value.name == "p"
    assert scene.talk.session.find("p") is None


async def test_a_start_may_be_given_up_before_it_has_begun() -> None:
    """Both requests may come in one packet."""
    scene = await ready()
    method = METHODS["process/start"]
    not_begun = method.handle(scene.talk, method.decode(START))

    result = await scene.call("process/terminate", {"processId": "p"})

    assert result == {"running": True, "survivors": [], "treeExact": True}
    with pytest.raises(StartCancelled):
        await not_begun
    assert scene.talk.session.find("p") is None
    assert scene.backend.specs == []


async def test_a_start_that_is_cancelled_from_outside_is_cancelled() -> None:
    """Then nobody waits for an answer, and the name is free."""
    scene = await ready(asyncio.Event(), FakeProcess())
    task = await scene.starting()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert scene.talk.session.find("p") is None


async def test_a_process_whose_client_left_while_it_started_keeps_more() -> None:
    gate, process = asyncio.Event(), FakeProcess()
    scene = await ready(gate, process)
    task = await scene.starting()

    scene.talk.ended()
    gate.set()
    await task

    assert process.calls == [("retain", 99)]
