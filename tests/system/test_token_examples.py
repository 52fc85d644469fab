"""The examples about tokens, in the how-to and in the help, are run and do what is said of them."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import holdfast
from holdfast.cli.main import configure
from holdfast.cli.options import Parser
from tests.fakes.frames import Wire
from tests.fakes.server import PATIENCE, Program, program_at
from tests.fakes.tokens import bearer, signing_options

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed"),
]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "ask-for-tokens.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[str]:
    """The lines of a shell, with what is continued on the next one."""
    return text.replace("\\\n", " ").strip().splitlines()


def examples_of_help() -> list[str]:
    parser = Parser(prog="holdfast token")
    configure(parser, "token")
    return [line.strip() for line in (parser.epilog or "").splitlines() if line.startswith("  holdfast")]


def variables(folder: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(folder), "HOLDFAST_CONFIG": str(folder / "config.toml")}


def shell(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=variables(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), f"{command}\n{done.stderr}"
    return done.stdout


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.mark.timeout(120)
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    """From top to bottom, but for TLS: the certificate is the reader's."""
    blocks = [text for text in BLOCK.findall(PAGE.read_text(encoding="utf-8")) if "wss:" not in text]
    printed = {}
    with ExitStack() as servers:
        url = ""
        for line in (line for text in blocks for line in commands(text)):
            if line.startswith("holdfast serve"):
                url = f"ws://127.0.0.1:{free_port()}"
                here = line.replace("ws://127.0.0.1:8765", url)
                server = subprocess.Popen(
                    here.split(), cwd=tmp_path, env=variables(tmp_path), stdout=subprocess.PIPE, text=True
                )
                servers.callback(server.wait)
                servers.callback(server.terminate)
                assert server.stdout is not None
                servers.enter_context(server.stdout)
                assert server.stdout.readline() == f"{url}\n"
            else:
                printed[line] = shell(line.replace("ws://127.0.0.1:8765", url), tmp_path)

    assert [text for line, text in printed.items() if line.startswith("holdfast run")] == ["hello\n"] * 2
    assert any(line.startswith("holdfast login") for line in printed)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, str, Path]]:
    folder = tmp_path_factory.mktemp("signing")
    with program_at(*signing_options(folder), "--metrics", env={b"CI_NAME": b"ci"}) as (started, url):
        yield started, url, folder


def made(line: str, folder: Path, here: Path) -> str:
    """The token of an example, with this directory in the place of the one that it names."""
    command = line.replace("/srv/ci", str(here)).replace("signing.secret", "secret").partition(" >")[0]
    return shell(command, folder).strip()


PAGE_EXAMPLES = [
    line
    for text in BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    for line in commands(text)
    if line.startswith("holdfast token")
]


@pytest.mark.parametrize("line", [*examples_of_help(), *PAGE_EXAMPLES])
async def test_the_token_of_an_example_works(
    line: str, served: tuple[Program, str, Path], tmp_path: Path
) -> None:
    """Its holder can begin, do what the example is about, and end without leaving anything behind."""
    _, url, folder = served
    token = made(line, folder, tmp_path)

    if "metrics" in line:
        wire = await Wire.dial(url)
        wire.writer.write(f"GET /metrics HTTP/1.1\r\nHost: x\r\n{bearer(token)}\r\n\r\n".encode())
        assert (await wire.reader.readline()).startswith(b"HTTP/1.1 200 ")
        await wire.close()
    async with holdfast.connect(url, token=token) as host:
        if "metrics" not in line:
            done = await host.run(["/bin/sh", "-c", "echo works"], cwd=str(tmp_path), capture_output=True)
            assert (done.returncode, done.stdout) == (0, b"works\n")
            name = f"kept-{os.urandom(4).hex()}"
            kept = await host.start(["/bin/sleep", "1000"], cwd=str(tmp_path), name=name, keep=True)
            assert name in [one.name for one in await host.processes()]
            await kept.end()

    # Who may have one session gets one: that of the example is closed, and not left to expire.
    (subject,) = re.findall(r"--subject (\S+)", line)
    only = made(f"holdfast token --secret-file secret --subject {subject} --sessions 1", folder, tmp_path)
    async with holdfast.connect(url, token=only):
        pass
