"""The wall clock jumps, by hours and years: nothing that the server waits for notices."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.client import Client
from tests.fakes.company import company, no_trace
from tests.fakes.server import Program, program_at
from tests.fakes.trees import exit_of, greet, knowing

HOUR = 3600
YEAR = 365 * 24 * HOUR
JUMPS = (HOUR, -HOUR, 10 * YEAR, -10 * YEAR, 0)

SOURCE = Path(__file__).parents[1] / "fakes" / "wall_clock.c"

pytestmark = pytest.mark.slow


class Clock:
    """The wall clock of a server."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.jump(0)

    def jump(self, seconds: int) -> None:
        # At once: the server reads it whenever it asks for the time.
        aside = self._path.with_suffix(".new")
        aside.write_text(str(seconds))
        aside.rename(self._path)


@pytest.fixture(scope="module")
def clocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, str, Clock]]:
    """A server whose wall clock is ours to set."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler")
    place = tmp_path_factory.mktemp("clock")
    library = place / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    clock = Clock(place / "shift")
    env = {b"LD_PRELOAD": bytes(library), b"WALL_CLOCK": bytes(place / "shift")}
    with program_at(env=env) as (program, url):
        yield program, url, clock


async def started_at(talking: Client, name: str) -> float:
    """Seconds since the epoch at which the server says it has started a process."""
    listed: list[dict[str, Any]] = (await talking.call("process/list"))["processes"]
    (found,) = [one["startedAtMs"] for one in listed if one["processId"] == name]
    return float(found) / 1000


async def test_the_clock_of_the_test_works(clocked: tuple[Program, str, Clock]) -> None:
    """Or the others would show nothing."""
    _, url, clock = clocked
    async with knowing(url) as talking:
        for number, jump in enumerate(JUMPS):
            clock.jump(jump)
            await talking.start(f"p{number}", "true")
            assert abs(await started_at(talking, f"p{number}") - time.time() - jump) < HOUR / 2
        await talking.call("session/close")


@pytest.mark.timeout(60)
async def test_waits_and_timeouts_take_as_long_as_they_should(clocked: tuple[Program, str, Clock]) -> None:
    """A read that waits does not return early; a timeout neither comes early nor stays away."""
    program, url, clock = clocked
    async with no_trace(program, url), company(url) as neighbours, knowing(url) as talking:
        await talking.start("quiet", "sleep", "1000")
        await talking.start("short", "sleep", "1000", timeoutMs=1500)
        started = time.monotonic()
        reading = talking.post("process/read", {"processId": "quiet", "waitMs": 1500})
        for jump in JUMPS:
            clock.jump(jump)
            await neighbours.is_well()
            assert not reading.done() or time.monotonic() - started >= 1.5
        page = await talking.result(reading)
        assert time.monotonic() - started >= 1.5
        assert page["chunks"] == []
        end = await exit_of(talking, "short")
        assert end["outcome"]["kind"] == "timeout"
        await talking.call("session/close")


@pytest.mark.timeout(60)
async def test_a_session_waits_for_its_client_whatever_the_clock_shows(
    clocked: tuple[Program, str, Clock],
) -> None:
    """Years pass on the wall while the client is away for a moment."""
    program, url, clock = clocked
    async with no_trace(program, url), company(url) as neighbours:
        talking = await Client.connect(url)
        await greet(talking)
        await talking.start("p", "cat", pipeStdin=True)
        await talking.abort()
        for jump in JUMPS:
            clock.jump(jump)
            await neighbours.is_well(rounds=2)
        again = await Client.connect(url)
        await greet(again, resumeSessionId=talking.session)
        assert await again.write("p", b"still here", "w") == "accepted"
        await again.until(lambda: again.tale("p").data() == b"still here")
        await again.call("session/close")
        await again.close()
