"""The options that choose a sandbox: what they mean together, and what is refused."""

from __future__ import annotations

import pytest

from holdfast.cli.main import main, parse
from holdfast.cli.report import Failure
from holdfast.cli.sandbox_options import sandbox_of
from holdfast.sandbox import Sandbox


@pytest.mark.parametrize(
    ("options", "sandbox"),
    [
        ([], None),
        (["--sandbox"], Sandbox.workspace()),
        (["--sandbox", "workspace-write"], Sandbox.workspace()),
        (["--sandbox=workspace-write", "--network"], Sandbox.workspace(network=True)),
        (["--sandbox", "--no-network"], Sandbox.workspace()),
        (["--sandbox", "--no-tmp"], Sandbox.workspace(tmp=False)),
        (
            ["--sandbox", "--writable", "a", "--writable", "/b", "--deny", "*.pem", "--deny", "c"],
            Sandbox.workspace(write=["a", "/b"], deny=["*.pem", "c"]),
        ),
        (["--sandbox", "read-only"], Sandbox.read_only()),
        (["--sandbox", "read-only", "--network", "--deny", "x"], Sandbox.read_only(network=True, deny=["x"])),
        (["--sandbox", "danger-full-access"], None),
        (["--sandbox", "danger-full-access", "--network"], None),
        (["--sandbox", "danger-full-access", "--no-network"], Sandbox.full_access(network=False)),
    ],
)
def test_the_options_describe_a_sandbox(options: list[str], sandbox: Sandbox | None) -> None:
    assert sandbox_of(parse(["run", *options, "--", "true"])) == sandbox


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--writable", "x"], "--writable belongs to a sandbox"),
        (["--network"], "--network belongs to a sandbox"),
        (["--no-network"], "--no-network belongs to a sandbox"),
        (["--deny", "x"], "--deny belongs to a sandbox"),
        (["--no-tmp"], "--no-tmp belongs to a sandbox"),
        (["--sandbox", "read-only", "--writable", "x"], "take --sandbox workspace-write"),
        (["--sandbox", "read-only", "--no-tmp"], "--no-tmp means nothing with read-only"),
        (["--sandbox", "danger-full-access", "--writable", "x"], "--writable means nothing with danger"),
        (["--sandbox", "danger-full-access", "--deny", "x"], "--deny means nothing with danger"),
        (["--sandbox", "--writable", ""], "one of them is empty"),
        (["--sandbox", "--deny", ""], "one of them is empty"),
    ],
)
def test_what_would_be_left_out_is_refused(options: list[str], words: str) -> None:
    """Whoever says ``--deny`` believes in it: to run the program all the same would be worse than not to."""
    with pytest.raises(Failure, match=words):
        sandbox_of(parse(["exec", *options, "--", "true"]))


@pytest.mark.parametrize(
    ("given", "argv"),
    [
        (["--sandbox", "--", "ls", "-l"], ["ls", "-l"]),
        (["--sandbox", "--timeout", "1s", "ls"], ["ls"]),
        (["--sandbox", "read-only", "ls", "--sandbox"], ["ls", "--sandbox"]),
        (["--sandbox=workspace-write", "ls"], ["ls"]),
        (["--sandbox", "--", "read-only"], ["read-only"]),
    ],
)
def test_the_program_is_never_taken_for_a_sandbox(given: list[str], argv: list[str]) -> None:
    arguments = parse(["run", *given])

    assert arguments.argv == argv
    assert arguments.sandbox in ("read-only", "workspace-write")


def test_a_program_behind_the_bare_option_is_refused_with_the_right_spelling(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "--sandbox", "ls", "-l"])

    assert end.value.code == 125
    said = capsys.readouterr().err
    assert "'ls' is no sandbox: take read-only, workspace-write or danger-full-access" in said
    assert "write '--sandbox -- ls'" in said
