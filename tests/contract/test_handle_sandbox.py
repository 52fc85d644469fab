"""Commands in one of the sandboxes that have a name: what they can do, and what is told of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Completed, Denial, Host, Kind, Sandbox

pytestmark = pytest.mark.slow


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace, with something beside it."""
    for name in ("work/.git", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "work" / "secret.pem").write_text("key\n")
    return tmp_path / "work"


async def sh(host: Host, work: Path, sandbox: Sandbox, script: str) -> Completed[str]:
    if host.info.sandboxes.backend is None:
        pytest.skip(f"no sandbox here: {host.info.sandboxes.reason}")
    return await host.run(["sh", "-c", script], cwd=work, sandbox=sandbox, capture_output=True, text=True)


async def test_a_workspace_can_be_written_and_nothing_else(host: Host, work: Path) -> None:
    sandbox = Sandbox.workspace(tmp=False)

    inside = await sh(host, work, sandbox, "echo new >made && cat made /etc/passwd >/dev/null")
    outside = await sh(host, work, sandbox, "echo new >../outside/made")
    protected = await sh(host, work, sandbox, "mkdir .git/hooks")

    assert (inside.returncode, outside.returncode != 0, protected.returncode != 0) == (0, True, True)
    assert (work / "made").read_text() == "new\n"
    assert not (work / "../outside/made").exists()
    assert not (work / ".git/hooks").exists()


async def test_further_places_can_be_written_if_that_is_said(host: Host, work: Path) -> None:
    beside = work.parent / "outside"

    relative = await sh(
        host, work, Sandbox.workspace(write=["../outside"], tmp=False), "echo a >../outside/a"
    )
    absolute = await sh(host, work, Sandbox.workspace(write=[beside], tmp=False), "echo b >../outside/b")

    assert (relative.returncode, absolute.returncode) == (0, 0)
    assert sorted(path.name for path in beside.iterdir()) == ["a", "b"]


async def test_what_is_read_only_can_write_nowhere(host: Host, work: Path) -> None:
    done = await sh(host, work, Sandbox.read_only(), "cat secret.pem; echo new >made")

    assert (done.returncode != 0, done.stdout) == (True, "key\n")
    assert not (work / "made").exists()


async def test_full_access_is_no_sandbox(host: Host, work: Path) -> None:
    done = await sh(host, work, Sandbox.full_access(), "echo new >../outside/made; mkdir .git/hooks")

    assert done.returncode == 0
    assert (work.parent / "outside" / "made").exists()


async def test_the_network_is_there_only_if_that_is_said(host: Host, work: Path) -> None:
    look = "import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM)"
    script = f"python3 -c '{look}'"

    without = await sh(host, work, Sandbox.workspace(), script)
    refused = await sh(host, work, Sandbox.full_access(network=False), script)
    with_it = await sh(host, work, Sandbox.workspace(network=True), script)

    assert (without.returncode, refused.returncode, with_it.returncode) == (1, 1, 0)


async def test_a_pattern_hides_what_matches_it(host: Host, work: Path) -> None:
    sandbox = Sandbox.workspace(deny=["**/*.pem"])
    if host.info.sandboxes.backend == "landlock":
        pytest.skip("Landlock cannot deny something in a place that can be read")

    done = await sh(host, work, sandbox, "echo new >made && cat secret.pem")

    assert (done.returncode, done.stdout) == (1, "")
    assert (work / "made").exists()


# What was refused.


async def test_what_was_refused_is_told_of_a_command(host: Host, work: Path) -> None:
    """An agent that knows what was refused can ask for exactly that."""
    script = "mkdir .git/hooks; echo x >../outside/made; exit 3"

    done = await sh(host, work, Sandbox.workspace(tmp=False), script)

    if not host.info.sandboxes.exact:
        pytest.skip("there is no witness here")
    assert (done.returncode, done.outcome.kind) == (3, Kind.SANDBOX_DENIED)
    assert done.denials == (
        Denial("mkdir", str(work / ".git/hooks")),
        Denial("open", str(work.parent / "outside/made")),
    )


async def test_what_was_refused_is_told_although_the_command_succeeded(host: Host, work: Path) -> None:
    done = await sh(host, work, Sandbox.read_only(), "mkdir made; true")

    if not host.info.sandboxes.exact:
        pytest.skip("there is no witness here")
    assert (done.returncode, done.denials) == (0, (Denial("mkdir", str(work / "made")),))


async def test_nothing_is_refused_without_a_sandbox(host: Host) -> None:
    done = await host.run(["false"], capture_output=True)

    assert done.denials == ()


async def test_whoever_only_waits_is_told_what_was_refused(host: Host, work: Path) -> None:
    """The end of a process that nobody reads comes in another message."""
    if not host.info.sandboxes.exact:
        pytest.skip("there is no witness here")
    handle = await host.start(
        ["sh", "-c", "mkdir made; exit 1"], cwd=work, sandbox=Sandbox.read_only(), keep=True
    )
    assert handle.denials == ()

    found = await host.attach(handle.name)
    outcome = await found.wait()

    assert outcome.kind is Kind.SANDBOX_DENIED
    assert found.denials == (Denial("mkdir", str(work / "made")),)
    await handle.end()
