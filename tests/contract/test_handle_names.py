"""Names of processes, near and far: free at once, found by shortened identifiers, forgotten on request."""

from __future__ import annotations

import pytest

from holdfast import Handle, Host, Kind, NameTaken, StillRunning, UnknownProcess
from holdfast.api.options import Options
from holdfast.errors import BadRequest
from tests.fakes.gate import Gate


@pytest.fixture
def job(request: pytest.FixtureRequest) -> str:
    """A name that no other test has used on the same server."""
    return f"job-{request.node.name[:150]}"


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


async def test_a_process_that_has_ended_frees_its_name(host: Host, job: str) -> None:
    """A restart under the same name that does nothing is the worst of all answers."""
    first = await host.start(sh("echo first"), name=job, keep=True)
    await first.wait()

    second = await host.start(sh("echo second"), name=job, keep=True)

    assert await (await host.attach(job)).communicate() == (b"second\n", b"")
    assert await (await host.attach(first.identifier)).communicate() == (b"first\n", b"")
    assert second.name == first.name == job
    assert second.identifier != first.identifier


async def test_a_process_that_was_killed_frees_its_name_too(host: Host, job: str, gate: Gate) -> None:
    first = await host.start(sh(gate.shell), name=job, keep=True)
    with pytest.raises(NameTaken) as caught:
        await host.start(sh("true"), name=job, keep=True)
    assert caught.value.name == job

    await first.end()

    assert (await host.start(sh("true"), name=job, keep=True)).name == job


async def test_a_kept_process_without_a_name_gets_one_that_can_be_said(host: Host) -> None:
    started = await host.start(sh("exit 3"), keep=True)

    assert started.name.count("-") == 1
    assert started.name.replace("-", "").isalpha()
    assert await (await host.attach(started.name)).wait() == await started.wait()


async def test_an_identifier_may_be_shortened(host: Host) -> None:
    started = await host.start(sh("exit 4"), keep=True)

    found = await host.attach(started.identifier[:12])

    assert (found.identifier, found.name) == (started.identifier, started.name)
    with pytest.raises(UnknownProcess):
        await host.attach(started.identifier[:3])


async def test_an_ended_process_is_forgotten_on_request(host: Host, job: str, gate: Gate) -> None:
    started = await host.start(sh(gate.shell), name=job, keep=True)
    with pytest.raises(StillRunning):
        await host.remove(job)
    gate.open()
    await started.wait()

    await host.remove(job)

    assert job not in [each.name for each in await host.processes()]
    with pytest.raises(UnknownProcess):
        await host.attach(job)


async def test_a_process_that_removes_itself_is_in_no_list(host: Host, job: str) -> None:
    started = await host.start(sh("echo said"), name=job, keep=True, auto_remove=True)

    output = await started.communicate()

    assert output == (b"said\n", b"")
    assert job not in [each.name for each in await host.processes()]


async def test_an_idempotent_start_finds_what_it_has_started(host: Host, job: str, gate: Gate) -> None:
    async def start(script: str) -> Handle:
        return await host.start(sh(script), name=job, keep=True, idempotent=True)

    first, again = await start(gate.shell), await start(gate.shell)
    assert again.pid == first.pid
    with pytest.raises(NameTaken):
        await start("something else")
    gate.open()
    await first.wait()

    ended = await start(gate.shell)

    assert (ended.pid, await ended.wait()) == (first.pid, await first.wait())


@pytest.mark.parametrize(
    "options", [{"idempotent": True}, {"idempotent": True, "name": "x"}, {"auto_remove": True}]
)
async def test_options_that_need_others_say_so(host: Host, options: Options) -> None:
    with pytest.raises(ValueError, match="needs"):
        await host.start(sh("true"), **options)


async def test_a_name_that_cannot_be_typed_is_refused(host: Host) -> None:
    with pytest.raises(BadRequest):
        await host.start(sh("true"), name="a\nb", keep=True)


async def test_a_restart_is_the_same_under_the_same_name(host: Host, job: str, gate: Gate) -> None:
    script = f'echo "$WORD"; {gate.shell}'
    first = await host.start(sh(script), name=job, keep=True, env={"WORD": "said", "PATH": "/usr/bin:/bin"})
    await gate.reached()

    second = await host.restart(job, grace=0)
    await gate.reached()
    gate.open()
    output = await second.communicate()

    assert output == (b"said\n", b"")
    assert (second.name, (await host.attach(job)).identifier) == (job, second.identifier)
    assert (await (await host.attach(first.identifier)).wait()).kind is Kind.TERMINATED
