"""The command line: what it takes, what it refuses, and in which words."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from holdfast import __version__
from holdfast.cli import main as module
from holdfast.cli.main import COMMANDS, main, parse, parser


def test_the_version_is_printed_by_command_and_by_option(capsys: pytest.CaptureFixture[str]) -> None:
    """Both are what people try first."""
    code = main(["version"])
    with pytest.raises(SystemExit) as end:
        main(["--version"])

    assert code == 0
    assert end.value.code == 0
    assert capsys.readouterr().out == f"holdfast {__version__}\n" * 2


def test_help_names_the_options_of_serve(capsys: pytest.CaptureFixture[str]) -> None:
    """The help is the manual of whoever sits at the terminal."""
    with pytest.raises(SystemExit) as end:
        main(["serve", "--help"])

    assert end.value.code == 0
    shown = capsys.readouterr().out
    for option in ("--listen", "--endpoint", "--concurrent-requests", "--retain-detached-bytes"):
        assert option in shown
    for option in ("--drain", "--process-quiet", "--command-quiet", "--sandbox", "--command-sandbox"):
        assert option in shown


WRONG = {
    "no command": ([], "required: COMMAND"),
    "unknown command": (["dance"], "there is no command 'dance'"),
    "a slip": (["rnu"], "there is no command 'rnu'; did you mean 'run'?"),
    "half an option": (["serve", "--end", "app"], "unrecognized arguments: --end app"),
    "unknown option": (["serve", "--dance"], "unrecognized arguments: --dance"),
    "no requests at once": (["serve", "--concurrent-requests", "0"], "0 is not a positive number"),
    "requests that are no number": (
        ["serve", "--concurrent-requests", "x"],
        "--concurrent-requests: x is not a positive number",
    ),
    "nothing retained": (["serve", "--retain-detached-bytes", "0"], "0 is not a positive number"),
    "less than nothing retained": (["serve", "--retain-total-bytes", "-1"], "-1 is not a positive number"),
    "unknown endpoint": (["serve", "--endpoint", "x"], "invalid choice: 'x'"),
    "less than no time to drain": (["serve", "--drain", "-1"], "-1 is not a number of seconds"),
    "no end of the drain": (["serve", "--drain", "inf"], "inf is not a number of seconds"),
    "a drain that is no number": (["serve", "--drain", "nan"], "nan is not a number of seconds"),
    "a drain in words": (["serve", "--drain", "soon"], "soon is not a number of seconds"),
    "a drain of nothing": (["serve", "--drain", ""], "--drain:  is not a number of seconds"),
    "less than no silence": (["serve", "--process-quiet", "-0.1"], "-0.1 is not a number of seconds"),
    "silence in words": (["serve", "--process-quiet", "x"], "x is not a number of seconds"),
    "less than no silence of a command": (
        ["serve", "--command-quiet", "-5"],
        "-5 is not a number of seconds",
    ),
    "unknown sandbox": (["serve", "--sandbox", "jail"], "--sandbox: invalid choice: 'jail'"),
    "a sandbox in the words of the protocol": (
        ["serve", "--command-sandbox", "readOnly"],
        "--command-sandbox: invalid choice: 'readOnly'",
    ),
    "endless silence of a command": (
        ["serve", "--command-quiet", "1e999"],
        "1e999 is not a number of seconds",
    ),
}


PROCESSES = {
    "a time": (["run", "--timeout", "soon", "--", "true"], "argument --timeout: 'soon' is not a time"),
    "a size": (["exec", "--memory", "much", "true"], "argument --memory: 'much' is not a number of bytes"),
    "an option": (["run", "--dance", "--", "true"], "unrecognized arguments: --dance"),
    "no name": (["wait"], "the following arguments are required: NAME"),
}


@pytest.mark.parametrize(("arguments", "words"), PROCESSES.values(), ids=PROCESSES.keys())
def test_where_the_code_is_a_processes_a_wrong_call_has_ours(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)

    assert end.value.code == 125
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "argv"),
    [
        (["run", "ls", "-l"], ["ls", "-l"]),
        (["run", "--", "ls", "-l"], ["ls", "-l"]),
        (["run", "-t", "--", "ls", "--", "-t"], ["ls", "--", "-t"]),
        (["run", "-t", "ls", "--", "-t"], ["ls", "--", "-t"]),
        (["exec", "-e", "A=1", "sh", "-e"], ["sh", "-e"]),
        (["run", "--", "--", "x"], ["--", "x"]),
        (["run"], []),
    ],
)
def test_what_follows_the_options_is_the_programs(given: list[str], argv: list[str]) -> None:
    """As with docker and ssh: the mark is only needed where there would be doubt."""
    assert parse(given).argv == argv


@pytest.mark.parametrize(
    "before", [["-H", "ws://h:1"], ["--url", "ws://h:1"], ["-Hws://h:1"], ["--url=ws://h:1"]]
)
def test_the_server_may_stand_before_the_command(before: list[str]) -> None:
    arguments = parse([*before, "run", "-t", "ls"])

    assert (arguments.url, arguments.tty, arguments.argv) == ("ws://h:1", True, ["ls"])


def test_all_commands_know_their_module_and_help_needs_none_of_them() -> None:
    """The parser of everything, for documents and completion, is made of the same parts."""
    shown = parser().format_help()

    assert all(command.help in shown for command in COMMANDS.values())


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["version"], ["--version"], ["--help"], ["run", "--help"], ["rnu"]])
def test_what_needs_no_event_loop_loads_none(arguments: list[str]) -> None:
    """It is most of what a start takes."""
    script = (
        "import sys\n"
        "from holdfast.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "heavy = ('asyncio', 'msgspec', 'holdfast.model', 'holdfast.errors')\n"
        "print([name for name in heavy if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[-1] == "[]"


def test_the_version_can_be_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"version": __version__}


def test_a_failure_is_one_line_with_our_name_and_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["ps"])

    shown = capsys.readouterr()
    assert (code, shown.out) == (125, "")
    assert shown.err.startswith("holdfast: no server given: ")


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141)])
def test_an_interrupt_and_a_reader_that_has_enough_are_no_failures(
    error: type[BaseException], code: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(module, "parse", fail)
    monkeypatch.setattr(os, "dup2", lambda *_: None)

    assert main(["version"]) == code
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_call_is_refused_with_code_two_and_a_reason(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Usage errors are told apart from failures by their code."""
    with pytest.raises(SystemExit) as end:
        main(arguments)

    assert end.value.code == 2
    assert words in capsys.readouterr().err


def test_a_sandbox_is_the_best_there_is_and_commands_only_read_unless_said_otherwise() -> None:
    """The default is what the protocol says; to allow more is somebody's decision."""
    absent = parser().parse_args(["serve"])
    given = parser().parse_args(["serve", "--sandbox", "off", "--command-sandbox", "danger-full-access"])

    assert (absent.sandbox, absent.command_sandbox) == ("auto", "read-only")
    assert (given.sandbox, given.command_sandbox) == ("off", "danger-full-access")


def test_times_are_seconds_and_absent_unless_given() -> None:
    given = parser().parse_args(
        ["serve", "--drain", "0", "--process-quiet", "1e-1", "--command-quiet", "0.25", "--endpoint", "app"]
    )
    absent = parser().parse_args(["serve"])

    assert (given.drain, given.process_quiet, given.command_quiet) == (0.0, 0.1, 0.25)
    assert given.endpoint == "app"
    assert (absent.drain, absent.process_quiet, absent.command_quiet) == (None, None, None)
    assert absent.endpoint == "auto"


REFUSED = {
    "another scheme": (
        ["--listen", "http://127.0.0.1:1"],
        "unsupported --listen URL `http://127.0.0.1:1`; expected `ws://IP:PORT`, `wss://IP:PORT`,"
        " `unix://PATH` or `stdio`",
    ),
    "an empty path": (
        ["--listen", "unix://"],
        "unsupported --listen URL `unix://`; expected `ws://IP:PORT`, `wss://IP:PORT`, `unix://PATH`"
        " or `stdio`",
    ),
    "a host name": (
        ["--listen", "ws://localhost:1"],
        "invalid websocket --listen URL `ws://localhost:1`; expected `ws://IP:PORT`",
    ),
    "no port": (
        ["--listen", "ws://127.0.0.1"],
        "invalid websocket --listen URL `ws://127.0.0.1`; expected `ws://IP:PORT`",
    ),
    "a path behind the port": (
        ["--listen", "ws://127.0.0.1:1/x"],
        "invalid websocket --listen URL `ws://127.0.0.1:1/x`; expected `ws://IP:PORT`",
    ),
    "a port beyond all ports": (
        ["--listen", "ws://127.0.0.1:65536"],
        "invalid websocket --listen URL `ws://127.0.0.1:65536`; expected `ws://IP:PORT`",
    ),
    "all interfaces": (
        ["--listen", "ws://0.0.0.0:0"],
        "refusing to start non-loopback websocket listener 0.0.0.0:0 without auth;"
        " configure `--ws-auth capability-token` or `--ws-auth signed-bearer-token`,"
        " or listen on 127.0.0.1 or [::1] and reach it through a tunnel",
    ),
    "all interfaces of the new kind": (
        ["--listen", "ws://[::]:0"],
        "refusing to start non-loopback websocket listener [::]:0 without auth;"
        " configure `--ws-auth capability-token` or `--ws-auth signed-bearer-token`,"
        " or listen on 127.0.0.1 or [::1] and reach it through a tunnel",
    ),
    "another host's address, behind a good one": (
        ["--listen", "ws://127.0.0.1:0", "--listen", "ws://192.0.2.1:9"],
        "refusing to start non-loopback websocket listener 192.0.2.1:9 without auth;"
        " configure `--ws-auth capability-token` or `--ws-auth signed-bearer-token`,"
        " or listen on 127.0.0.1 or [::1] and reach it through a tunnel",
    ),
}


@pytest.mark.parametrize(("options", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_a_server_that_cannot_be_had_is_refused_in_one_line(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing has been started by then: neither listener nor process."""
    code = main(["serve", *options])

    shown = capsys.readouterr()
    assert code == 1
    assert shown.err == f"Error: {words}\n"
    assert shown.out == ""


@pytest.mark.slow
def test_the_package_can_be_run_as_a_module() -> None:
    """Where the script is not on the path, the interpreter is."""
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "version"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, f"holdfast {__version__}\n")


@pytest.mark.parametrize(
    "arguments", [["run", "--", "echo", "a\0b"], ["cp", "a\0b", ":x"], ["ps", "-H", "\0"]]
)
def test_a_nul_is_refused_wherever_it_stands(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 125
    assert capsys.readouterr().err.startswith("holdfast: an argument has a NUL in it")
