"""A server for the commands that need one, and a way to run commands in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from holdfast.cli.main import main
from tests.fakes.backends import serving
from tests.fakes.server import program_at
from tests.fakes.terminal import Call, Said


@pytest.fixture(scope="package")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that all tests of commands share; names are theirs to choose apart."""
    with serving(tmp_path_factory.mktemp("server")) as urls:
        yield urls["ws"]


@pytest.fixture(autouse=True)
def nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test meets the server of whoever runs it."""
    for name in ("HOLDFAST_URL", "HOLDFAST_TOKEN", "HOLDFAST_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOLDFAST_CONFIG", os.devnull)


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    """Run a command; a complaint about its arguments ends it like any other failure."""

    def call(*arguments: str) -> Said:
        try:
            code = main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        shown = capfd.readouterr()
        return Said(code, shown.out, shown.err)

    return call


@pytest.fixture
def forgetful(call: Call, monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    """The same on a server of its own that keeps little."""
    with program_at("--retain-detached-bytes", "65536") as (_, found):
        monkeypatch.setenv("HOLDFAST_URL", found)
        yield call


@pytest.fixture
def far(call: Call, url: str, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The same on the server."""
    monkeypatch.setenv("HOLDFAST_URL", url)
    return call
