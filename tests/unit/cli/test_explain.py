"""Errors of the library in the words of the command line."""

from __future__ import annotations

import pytest

from holdfast import errors as e
from holdfast.cli.explain import explain

WORDS = {
    "no such program": (
        e.SpawnFailed(e.Fault.PROGRAM, "x", "No such file or directory", number=2, search=e.Search("/bin")),
        "cannot run 'x': No such file or directory; it was looked for in the directories of PATH",
        127,
    ),
    "no such path": (
        e.SpawnFailed(e.Fault.PROGRAM, "/x", "No such file or directory", number=2),
        "cannot run '/x': No such file or directory",
        127,
    ),
    "no directory": (
        e.SpawnFailed(e.Fault.DIRECTORY, "/x", "No such file or directory", number=2),
        "cannot run in directory '/x': No such file or directory; -w names another",
        125,
    ),
    "no sandbox": (
        e.SpawnFailed(e.Fault.SANDBOX, "x", "no"),
        "the sandbox cannot be made: no; see 'holdfast doctor'",
        125,
    ),
    "no more processes": (
        e.SpawnFailed(e.Fault.SYSTEM, "fork", "Resource temporarily unavailable"),
        "cannot start: system 'fork': Resource temporarily unavailable",
        125,
    ),
    "unknown": (
        e.UnknownProcess("p"),
        "no process named 'p'; 'holdfast ps -a' shows those that there are",
        125,
    ),
    "taken": (
        e.NameTaken("p"),
        "a process named 'p' exists already; take another --name, or end that one with 'holdfast kill p'",
        125,
    ),
    "no terminal": (
        e.NoTerminal(),
        "the process has no terminal; start it with -t to give it one",
        125,
    ),
    "process lost": (
        e.ProcessLost("p", "why"),
        "process 'p' is lost: why; nobody knows how it ended",
        125,
    ),
    "link lost": (
        e.LinkLost("refused"),
        "no connection to ws://h:1: refused; is a server there?  'holdfast serve' starts one",
        125,
    ),
    "link lost, and the reason says to whom": (
        e.LinkLost("cannot reach ws://h:1"),
        "cannot reach ws://h:1; is a server there?  'holdfast serve' starts one",
        125,
    ),
    "link lost, for want of a token": (
        e.LinkLost("cannot reach ws://h:1: HTTP 401 Unauthorized: missing websocket bearer token"),
        "cannot reach ws://h:1: HTTP 401 Unauthorized: missing websocket bearer token;"
        " --token-file names a file with the token",
        125,
    ),
    "limit": (e.LimitReached("processes", 9), "the limit of processes is reached (9); try again later", 125),
    "anything else": (e.BadRequest("that is wrong"), "that is wrong", 125),
}


@pytest.mark.parametrize(("error", "words", "code"), WORDS.values(), ids=WORDS.keys())
def test_an_error_says_what_is_wrong_and_what_to_do(error: e.HoldfastError, words: str, code: int) -> None:
    failure = explain(error, url="ws://h:1")

    assert (str(failure), failure.code) == (words, code)


def test_what_may_have_been_done_is_not_to_be_repeated_blindly() -> None:
    assert "see 'holdfast ps -a' before you do it again" in str(explain(e.OutcomeUnknown("the start")))


def test_output_that_is_gone_can_be_had_next_time() -> None:
    assert "a larger --retain keeps more" in str(explain(e.OutputGap(1, 2, 3)))


def test_without_a_server_there_is_none_to_start() -> None:
    assert str(explain(e.LinkLost("gone"))) == "the connection is lost: gone"


def test_a_page_that_another_server_sent_stays_on_one_line() -> None:
    page = "HTTP 200 OK: <html>\n<body>\r\n" + "x" * 500
    words = str(explain(e.LinkLost(f"cannot reach ws://h:1: {page}"), url="ws://h:1"))

    assert words.startswith("cannot reach ws://h:1: HTTP 200 OK: <html> <body> xxx")
    assert words.endswith("xxx...; is a server there?  'holdfast serve' starts one")
    assert len(words) < 250
