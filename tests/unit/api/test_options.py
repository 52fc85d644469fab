"""From keywords to what is started."""

from __future__ import annotations

from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT

import pytest

from holdfast.api.options import INHERIT, Options, arguments, routes_of, spec_of, terms_of
from holdfast.model import PLAIN, EnvironmentPolicy, Inherit, Limits, ProcessTerms, Size, Spec, Stream
from holdfast.sandbox import Sandbox

NOTHING = EnvironmentPolicy(Inherit.NONE, ignore_default_excludes=False, exclude=(), set=(), include_only=())


def test_a_command_is_what_the_system_takes() -> None:
    assert arguments(["a", b"\xff", Path("/b")]) == ["a", "\udcff", "/b"]


@pytest.mark.parametrize("argv", ["ls -l", b"ls", Path("ls")])
def test_one_text_is_no_command(argv: str) -> None:
    """To take it apart into letters would be worse than to refuse it."""
    with pytest.raises(TypeError, match="sequence"):
        arguments(argv)


def test_a_text_is_a_command_for_a_shell() -> None:
    assert arguments("ls | wc", shell="/bin/zsh") == ["/bin/zsh", "-c", "ls | wc"]
    assert arguments(b"\xff", shell="/bin/sh") == ["/bin/sh", "-c", "\udcff"]
    with pytest.raises(TypeError, match="one text"):
        arguments(["ls", "-l"], shell="/bin/sh")


@pytest.mark.parametrize("other", [Options(env={}), Options(env_policy=NOTHING)])
def test_variables_are_laid_over_those_of_the_host_or_over_others(other: Options) -> None:
    with pytest.raises(ValueError, match="without env"):
        spec_of(["a"], Options(extra_env={"A": "1"}) | other, cwd="/")


def test_without_options_a_command_is_as_with_subprocess() -> None:
    assert spec_of(["a"], {}, cwd="/here") == Spec(argv=["a"], cwd="/here", env={}, env_policy=INHERIT)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (Options(cwd="below"), Spec(["a"], "/here/below", {}, INHERIT)),
        (Options(cwd=b"/else"), Spec(["a"], "/else", {}, INHERIT)),
        (Options(env={}), Spec(["a"], "/here", {}, None)),
        (Options(env={"A": "1"}), Spec(["a"], "/here", {"A": "1"}, None)),
        (Options(env={"A": "1"}, env_policy=NOTHING), Spec(["a"], "/here", {"A": "1"}, NOTHING)),
        (Options(extra_env={"A": "1", "B": None}), Spec(["a"], "/here", {"A": "1", "B": None}, INHERIT)),
        (Options(env_policy=NOTHING), Spec(["a"], "/here", {}, NOTHING)),
        (Options(terminal=True), Spec(["a"], "/here", {}, INHERIT, Size())),
        (Options(terminal=Size(1, 2)), Spec(["a"], "/here", {}, INHERIT, Size(1, 2))),
        (Options(terminal=False, stdin=DEVNULL), Spec(["a"], "/here", {}, INHERIT)),
        (Options(stdin=PIPE, arg0="b"), Spec(["a"], "/here", {}, INHERIT, stdin=True, arg0="b")),
    ],
)
def test_options_become_a_spec(options: Options, expected: Spec) -> None:
    assert spec_of(["a"], options, cwd="/here") == expected


def test_a_preset_gets_the_directory_of_its_command() -> None:
    here = spec_of(["a"], Options(sandbox=Sandbox.workspace()), cwd="/here")
    below = spec_of(["a"], Options(sandbox=Sandbox.workspace(), cwd="below"), cwd="/here")

    assert here.sandbox == Sandbox.workspace().at("/here")
    assert below.sandbox == Sandbox.workspace().at("/here/below")


def test_a_sandbox_that_forbids_nothing_is_none() -> None:
    """Where no sandbox can be kept it would be refused."""
    assert spec_of(["a"], Options(sandbox=Sandbox.full_access()), cwd="/here").sandbox is None
    assert (
        spec_of(["a"], Options(sandbox=Sandbox.full_access(network=False)), cwd="/here").sandbox is not None
    )


def test_options_become_terms() -> None:
    options = Options(timeout=1, idle_timeout=2, grace=3, output_limit=4, drain=5, limits=Limits(memory=6))

    assert terms_of(options) == ProcessTerms(1, 2, 3, 4, 5, Limits(memory=6))


def test_without_terms_the_engine_has_nothing_to_look_after() -> None:
    assert terms_of(Options(timeout=None, limits=None)) is PLAIN


@pytest.mark.parametrize(
    ("options", "routes"),
    [
        ({}, {Stream.STDOUT: Stream.STDOUT, Stream.STDERR: Stream.STDERR}),
        (Options(stdout=DEVNULL), {Stream.STDOUT: None, Stream.STDERR: Stream.STDERR}),
        (Options(stderr=STDOUT), {Stream.STDOUT: Stream.STDOUT, Stream.STDERR: Stream.STDOUT}),
        (Options(stdout=DEVNULL, stderr=STDOUT), {Stream.STDOUT: None, Stream.STDERR: None}),
        (Options(terminal=True), {Stream.PTY: Stream.STDOUT}),
        (Options(terminal=True, stdout=DEVNULL), {Stream.PTY: None}),
    ],
)
def test_options_say_where_output_goes(options: Options, routes: dict[Stream, Stream | None]) -> None:
    assert routes_of(options) == routes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Options(stdout=STDOUT), "stdout is one of PIPE, DEVNULL, not -2"),
        (Options(stderr=7), "stderr is one of PIPE, DEVNULL, STDOUT, not 7"),
    ],
)
def test_a_wish_that_cannot_be_fulfilled_is_refused(options: Options, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        routes_of(options)
    with pytest.raises(ValueError, match="stdin is one of None, PIPE, DEVNULL, not 0"):
        spec_of(["a"], Options(stdin=0), cwd="/")
