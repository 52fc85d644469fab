"""Sandboxes as they are told: a server understands what was meant, or nothing is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import BadRequest
from holdfast.protocol.sandbox import SandboxContext, context_of, sandbox_of
from holdfast.protocol.shapes import decoded
from holdfast.sandbox import Access, Named, Pattern, Protection, Sandbox, SandboxEntry, Where

from .test_paths_uris import PATHS

TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
PLACES = st.one_of(
    PATHS,
    st.sampled_from(Where).map(Named),
    TEXTS.map(lambda below: Named(Where.PROJECT_ROOTS, below)),
    TEXTS.map(Pattern),
)
ENTRIES = st.builds(SandboxEntry, PLACES, st.sampled_from(Access), st.booleans())
SANDBOXES = st.builds(
    Sandbox,
    entries=st.lists(ENTRIES, max_size=5).map(tuple),
    network=st.booleans(),
    cwd=PATHS,
    roots=st.lists(PATHS, max_size=3).map(tuple),
    pattern_depth=st.none() | st.integers(1, 2**64 - 1),
    least=st.sampled_from(Protection),
)


def understood(sandbox: Sandbox, cwd: str | None = "/else/where") -> Sandbox | None:
    """What a server makes of it."""
    told: Any = msgspec.json.decode(msgspec.json.encode(context_of(sandbox)))
    return sandbox_of(decoded(told, SandboxContext), cwd)


@given(sandbox=SANDBOXES, cwd=st.none() | PATHS)
def test_a_server_understands_what_was_meant(sandbox: Sandbox, cwd: str | None) -> None:
    assert understood(sandbox, cwd) == sandbox


@given(cwd=PATHS, roots=st.lists(PATHS, max_size=2).map(tuple), least=st.sampled_from(Protection))
def test_all_files_and_no_network_is_understood(cwd: str, roots: tuple[str, ...], least: Protection) -> None:
    sandbox = Sandbox(None, network=False, cwd=cwd, roots=roots, least=least)

    assert understood(sandbox) == sandbox


def test_a_sandbox_that_forbids_nothing_is_none() -> None:
    assert understood(Sandbox(None, network=True, cwd="/")) is None


@pytest.mark.parametrize(
    "preset",
    [
        Sandbox.read_only(network=True, deny=["*.pem", "/secret"]),
        Sandbox.workspace(write=["out"], deny=["**/*.pem"]),
        Sandbox.full_access(network=False),
    ],
)
def test_a_preset_is_understood_when_it_has_a_directory(preset: Sandbox) -> None:
    sandbox = preset.at("/repo")

    assert understood(sandbox) == sandbox


def test_a_sandbox_without_a_directory_gets_that_of_the_process() -> None:
    assert understood(Sandbox.read_only(), "/repo") == Sandbox.read_only().at("/repo")


@pytest.mark.parametrize("preset", [Sandbox.workspace(), Sandbox.read_only(deny=["*.pem"])])
def test_a_sandbox_that_is_relative_to_nothing_is_not_told(preset: Sandbox) -> None:
    """A server might take its own directory for the one that was meant."""
    with pytest.raises(BadRequest, match=r"Sandbox\.at gives it one"):
        context_of(preset)


def test_the_depth_of_patterns_means_nothing_without_entries() -> None:
    assert understood(Sandbox(None, network=False, cwd="/", pattern_depth=3)) == Sandbox(
        None, network=False, cwd="/"
    )


def test_what_other_servers_do_not_know_is_told_only_if_it_is_wanted() -> None:
    def told(least: Protection) -> Any:
        sandbox = Sandbox((), network=True, cwd="/", least=least)
        return msgspec.json.decode(msgspec.json.encode(context_of(sandbox)))

    assert "protectsSubpaths" not in told(Protection.SOFT)
    assert told(Protection.HARD)["protectsSubpaths"] == "hard"


@pytest.mark.parametrize(
    "place",
    [
        Named(Where.TMPDIR, "below"),
        "relative",
        "/a/../b",
        Pattern("\udcff*"),
        Named(Where.PROJECT_ROOTS, "\udcff"),
    ],
)
def test_a_place_without_words_is_refused(place: str | Named | Pattern) -> None:
    """Less than was asked for would be no sandbox."""
    with pytest.raises(BadRequest):
        context_of(Sandbox((SandboxEntry(place, Access.DENY),), network=True, cwd="/"))


@pytest.mark.parametrize("depth", [0, -1, 2**64])
def test_a_depth_without_words_is_refused(depth: int) -> None:
    with pytest.raises(BadRequest):
        context_of(Sandbox((), network=True, cwd="/", pattern_depth=depth))


@pytest.mark.parametrize("path", ["relative", "/a/.."])
def test_a_directory_that_is_no_absolute_path_is_refused(path: str) -> None:
    with pytest.raises(BadRequest):
        context_of(Sandbox((), network=True, cwd=path))
    with pytest.raises(BadRequest):
        context_of(Sandbox((), network=True, cwd="/", roots=(path,)))
