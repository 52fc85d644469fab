"""The options of ``serve``, as they are read."""

from __future__ import annotations

import pytest

from holdfast.cli.main import main
from holdfast.cli.options import Parser
from holdfast.cli.overview import parser_of_all
from holdfast.cli.serve_options import configure
from holdfast.dialects.endpoints import AUTO, ENDPOINTS
from holdfast.host.sandbox.backends import SANDBOX_BACKENDS


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
    "half an option": (["serve", "--end", "app"], "unrecognized arguments: --end app"),
    "unknown option": (["serve", "--dance"], "unrecognized arguments: --dance"),
    "no requests at once": (["serve", "--concurrent-requests", "0"], "0 is not a positive number"),
    "requests that are no number": (
        ["serve", "--concurrent-requests", "x"],
        "--concurrent-requests: x is not a positive number",
    ),
    "nothing retained": (["serve", "--retain-detached-bytes", "0"], "'0' is not a number of bytes"),
    "less than nothing retained": (["serve", "--retain-total-bytes", "-1"], "'-1' is not a number of bytes"),
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
    absent = parser_of_all().parse_args(["serve"])
    given = parser_of_all().parse_args(
        ["serve", "--sandbox", "off", "--command-sandbox", "danger-full-access"]
    )

    assert (absent.sandbox, absent.command_sandbox) == ("auto", "read-only")
    assert (given.sandbox, given.command_sandbox) == ("off", "danger-full-access")


@pytest.mark.parametrize("choice", ["auto", "off", *(row.name for row in SANDBOX_BACKENDS)])
def test_every_sandbox_backend_of_the_table_can_be_chosen(choice: str) -> None:
    """A list beside the table would fall behind it."""
    assert parser_of_all().parse_args(["serve", "--sandbox", choice]).sandbox == choice


def test_times_are_seconds_and_absent_unless_given() -> None:
    given = parser_of_all().parse_args(
        ["serve", "--drain", "0", "--process-quiet", "1e-1", "--command-quiet", "0.25", "--endpoint", "app"]
    )
    absent = parser_of_all().parse_args(["serve"])

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


def test_every_endpoint_can_be_chosen_and_by_default_the_client_chooses() -> None:
    """The options name them one by one: the table of endpoints would load an event loop for every help."""
    parser = Parser()
    configure(parser)
    (endpoint,) = [action for action in parser._actions if action.dest == "endpoint"]

    assert (endpoint.choices, endpoint.default) == ((*(row.name for row in ENDPOINTS), AUTO), AUTO)
