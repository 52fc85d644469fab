"""Recordings that a server writes: who may have them, and what becomes of them when it dies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.casts import eventually_ended, lines
from tests.fakes.client import Refusal, client
from tests.fakes.mortal import kill_server, mortal_at
from tests.fakes.server import eventually_sync, program_at
from tests.fakes.tokens import signing_options, token
from tests.fakes.trees import knowing

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with program_at(*signing_options(tmp_path_factory.mktemp("auth"))) as (_, url):
        yield url


async def test_who_may_not_write_files_may_not_record(url: str, tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    grant = {"methods": ["process/*"]}
    async with client(url, token=token("reader", holdfast=grant)) as talking:
        with pytest.raises(Refusal, match="fs/writeFile"):
            await talking.start("p", "true", tty=True, record={"path": path.as_uri()})
        await talking.start("p", "true", tty=True)  # The name is free.

    assert not path.exists()


async def test_a_recording_stays_below_the_roots_of_the_token(url: str, tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    grant = {"roots": [str(inside)]}
    async with client(url, token=token("rooted", holdfast=grant)) as talking:
        for number, path in enumerate((outside / "a.cast", inside / "link" / "a.cast")):
            with pytest.raises(Refusal):
                await talking.start(
                    f"p{number}", "true", tty=True, cwd=inside.as_uri(), record={"path": path.as_uri()}
                )
        await talking.start(
            "p", "true", tty=True, cwd=inside.as_uri(), record={"path": (inside / "a.cast").as_uri()}
        )
        await talking.closed("p")

    assert eventually_ended(inside / "a.cast")
    assert list(outside.iterdir()) == []


async def test_a_sandbox_of_the_recording_is_kept(url: str, tmp_path: Path) -> None:
    """As with ``fs/writeFile``, it is that of the request for the file."""
    path = tmp_path / "a.cast"
    place = {"type": "path", "path": tmp_path.as_uri()}
    read_only = {
        "permissions": {
            "type": "managed",
            "fileSystem": {"type": "restricted", "entries": [{"path": place, "access": "read"}]},
            "network": "enabled",
        },
        "windowsSandboxLevel": "disabled",
    }
    async with client(url, token=token("sandboxed")) as talking:
        with pytest.raises(Refusal):
            await talking.start("p", "true", tty=True, record={"path": path.as_uri(), "sandbox": read_only})

    assert not path.exists()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"tty": False}, "record needs a terminal"), ({"record": {"maxBytes": 9}}, "must be at least 1024")],
)
async def test_what_makes_no_sense_is_refused(
    url: str, tmp_path: Path, wrong: dict[str, object], words: str
) -> None:
    record = {"path": (tmp_path / "a.cast").as_uri()} | wrong.get("record", {})  # type: ignore[operator]
    async with client(url, token=token("odd")) as talking:
        with pytest.raises(Refusal, match=words):
            await talking.start("p", "true", **{"tty": True, **wrong, "record": record})


async def test_a_recording_ends_with_its_server(tmp_path: Path) -> None:
    """The process goes on.  What was written by then are whole lines, without an end."""
    path = tmp_path / "a.cast"
    with mortal_at() as (program, url):
        async with knowing(url) as talking:
            record = {"path": path.as_uri()}
            await talking.start("p", "sh", "-c", "echo one; read l; echo two", tty=True, record=record)
            eventually_sync(lambda: len(lines(path)) == 2)
            session = talking.session
        kill_server(program)
        async with knowing(url, resume=session) as again:
            await again.write("p", b"\n", "w")
            await again.closed("p")

    assert [json.loads(line)[1:] for line in lines(path)[1:]] == [["o", "one\r\n"]]
    assert path.read_text().endswith("\n")
