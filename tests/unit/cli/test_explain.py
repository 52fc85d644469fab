"""From the end of a process, or an error, to an exit code and a message."""

from __future__ import annotations

import errno

import pytest

from holdfast import errors as e
from holdfast.cli.explain import (
    code_of,
    code_of_start,
    command,
    explain,
    refusals,
    remark,
    state_of,
)
from holdfast.errors import Fault, SpawnFailed
from holdfast.errors import LinkFault as F
from holdfast.model import Kind, Outcome
from holdfast.sandbox import Denial

REACH = "cannot reach ws://h:1: "
"""How the reason of a connection that was not made begins."""


# The end of a process.

CODES = {
    "its own": (Outcome(Kind.EXIT, 3), 3),
    "a signal": (Outcome(Kind.SIGNAL, signal=9), 137),
    "a timeout": (Outcome(Kind.TIMEOUT, signal=9), 124),
    "an idle timeout": (Outcome(Kind.IDLE_TIMEOUT, exit_code=0), 124),
    "too much memory": (Outcome(Kind.OOM, signal=9), 137),
    "ended by somebody, with a code": (Outcome(Kind.TERMINATED, exit_code=0), 0),
    "ended by somebody": (Outcome(Kind.TERMINATED, signal=15), 143),
    "denied": (Outcome(Kind.SANDBOX_DENIED, exit_code=2), 2),
    "lost": (Outcome(Kind.LOST), 125),
    "nothing known": (Outcome(Kind.EXIT), 125),
}


@pytest.mark.parametrize(("outcome", "code"), CODES.values(), ids=CODES.keys())
def test_the_code_is_the_processes_unless_we_or_the_time_ended_it(outcome: Outcome, code: int) -> None:
    assert code_of(outcome) == code


def test_only_what_the_code_does_not_say_is_told() -> None:
    assert remark(Outcome(Kind.EXIT, 3)) is None
    assert remark(Outcome(Kind.SIGNAL, signal=9)) is None
    assert remark(Outcome(Kind.TERMINATED, signal=9)) is None
    assert remark(Outcome(Kind.OOM, signal=9)) == "it was ended because it used more memory than it may"
    assert remark(Outcome(Kind.TIMEOUT, detail="1 s")) == "it was ended because its time was over (1 s)"


def test_what_a_sandbox_refused_is_told_of_a_process_that_failed() -> None:
    denials = (Denial("open", "/etc/x"), Denial("mkdir", "/usr/y"), Denial("socket", "AF_INET"))
    denied = Outcome(Kind.SANDBOX_DENIED, 1, detail="open /etc/x")
    told = "the sandbox refused it: write /etc/x, mkdir /usr/y, network socket AF_INET"

    assert remark(denied, denials) == told
    assert remark(Outcome(Kind.TERMINATED, signal=9), denials) == told
    late = remark(Outcome(Kind.TIMEOUT, signal=9), denials[:1])
    assert late == "it was ended because its time was over; the sandbox refused it: write /etc/x"
    assert remark(Outcome(Kind.EXIT, 0), denials) is None
    guessed = Outcome(Kind.SANDBOX_DENIED, 1, detail="guessed from its output")
    assert remark(guessed) == "the sandbox refused it something (guessed from its output)"


def test_what_a_sandbox_refused_is_told_in_few_words_that_are_safe_to_show() -> None:
    """A command chooses the paths, and how many."""
    denials = [Denial("open", f"/{number}/\x1b[2J{'x' * 1000}", 9) for number in range(64)]

    told = refusals([*denials, Denial("", "", 1000)])

    assert len(told) < 500
    assert told.isprintable()
    assert told.startswith("the sandbox refused it: write /0/\\x1b[2Jxxx")
    assert told.endswith("x..., 1061 more")


STARTS = {
    "missing": (Fault.PROGRAM, errno.ENOENT, "No such file or directory", 127),
    "a file on the way": (Fault.PROGRAM, errno.ENOTDIR, "Not a directory", 127),
    "forbidden": (Fault.PROGRAM, errno.EACCES, "Permission denied", 126),
    "told by an old server": (Fault.PROGRAM, None, "Permission denied", 126),
    "told by one without numbers": (Fault.PROGRAM, None, "No such file", 127),
    "no program": (Fault.PROGRAM, errno.ENOEXEC, "Exec format error", 126),
    "something else": (Fault.PROGRAM, errno.ELOOP, "Too many levels", 126),
    "the directory": (Fault.DIRECTORY, errno.ENOENT, "No such file or directory", 125),
    "the host": (Fault.SYSTEM, errno.EAGAIN, "Resource temporarily unavailable", 125),
}


@pytest.mark.parametrize(("fault", "number", "reason", "code"), STARTS.values(), ids=STARTS.keys())
def test_a_start_that_failed_has_the_code_of_a_shell(
    fault: Fault, number: int | None, reason: str, code: int
) -> None:
    assert code_of_start(SpawnFailed(fault, "x", reason, number=number)) == code


STATES = {
    "running": ("running", None, None, "running"),
    "exited": ("exited", Outcome(Kind.EXIT, 0), 0, "exit 0"),
    "closed": ("closed", Outcome(Kind.SIGNAL, signal=15), 143, "SIGTERM"),
    "a timeout": ("closed", Outcome(Kind.TIMEOUT, signal=9), 137, "timeout"),
    "of a server that tells less": ("closed", None, 5, "exit 5"),
    "of one that tells nothing": ("closed", None, None, "closed"),
}


@pytest.mark.parametrize(("state", "outcome", "code", "words"), STATES.values(), ids=STATES.keys())
def test_a_state_is_told_in_a_word_or_two(
    state: str, outcome: Outcome | None, code: int | None, words: str
) -> None:
    assert state_of(state, outcome, code) == words


# Errors.

WORDS = {
    "no such program": (
        e.SpawnFailed(
            e.Fault.PROGRAM, "x", "No such file or directory", number=2, search=e.ProgramSearch("/bin")
        ),
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
        "the sandbox cannot be made: no; 'holdfast doctor' on the host of the server says what is kept there,"
        " and what to install",
        125,
    ),
    "a sandbox that is not kept": (
        e.SandboxUnavailable("no"),
        "the sandbox cannot be kept on this host: no; 'holdfast doctor' on the host of the server says what"
        " is kept there, and what to install",
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
        "the name 'p' is taken: 'holdfast attach p' follows its process, 'holdfast kill p' ends it,"
        " --replace does that before this start",
        125,
    ),
    "ambiguous": (
        e.NameAmbiguous("abcd"),
        "the identifiers of several processes begin with 'abcd'; write more of it,"
        " as 'holdfast ps -a --no-trunc' shows it",
        125,
    ),
    "still running": (
        e.StillRunning("p"),
        "process 'p' still runs; end it first with 'holdfast kill p', or use rm -f",
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
        e.LinkLost("refused", fault=F.UNREACHABLE),
        "no connection to ws://h:1: refused; is a server there?  'holdfast serve' starts one",
        125,
    ),
    "link lost, and the reason says to whom": (
        e.LinkLost("cannot reach ws://h:1", fault=F.UNREACHABLE),
        "cannot reach ws://h:1; is a server there?  'holdfast serve' starts one",
        125,
    ),
    "link lost, for want of a token": (
        e.LinkLost(f"{REACH}HTTP 401 Unauthorized: missing websocket bearer token", fault=F.TOKEN),
        "ws://h:1 asks for a token; 'holdfast login ws://h:1' stores one,"
        " or --token-file names a file with it",
        125,
    ),
    "link lost, for a token that the server does not know": (
        e.LinkLost(f"{REACH}HTTP 401 Unauthorized: invalid websocket bearer token", fault=F.TOKEN),
        "ws://h:1 does not accept the token (invalid websocket bearer token);"
        " get another one, and 'holdfast login ws://h:1' stores it",
        125,
    ),
    "link lost, for want of room": (
        e.LinkLost(f"{REACH}HTTP 503 Service Unavailable: limit reached: connections (2)", fault=F.FULL),
        "ws://h:1 has no room for another client: limit reached: connections (2);"
        " end one, or try again later",
        125,
    ),
    "link lost, for want of another session": (
        e.LinkLost("ws://h:1 refuses us: limit reached: sessions (2)", fault=F.FULL),
        "ws://h:1 has no room for another client: limit reached: sessions (2); end one, or try again later",
        125,
    ),
    "link lost, for want of a permission": (
        e.LinkLost(f"{REACH}HTTP 403 Forbidden", fault=F.FORBIDDEN),
        "ws://h:1 does not permit this client: cannot reach ws://h:1: HTTP 403 Forbidden; ask who runs it",
        125,
    ),
    "link lost, without TLS": (
        e.LinkLost(f"{REACH}the server there speaks TLS: use wss://h:1", fault=F.PROTOCOL),
        "cannot reach ws://h:1: the server there speaks TLS: use wss://h:1",
        125,
    ),
    "link lost, with a strange certificate": (
        e.LinkLost(f"{REACH}its certificate cannot be trusted: self-signed", fault=F.CERTIFICATE),
        "cannot reach ws://h:1: its certificate cannot be trusted: self-signed;"
        " $SSL_CERT_FILE names a file of authorities to trust",
        125,
    ),
    "link lost, after there was one": (
        e.LinkLost("the server closed the connection"),
        "no connection to ws://h:1: the server closed the connection;"
        " what runs there goes on, and 'holdfast ps' shows it when the server is back",
        125,
    ),
    "forbidden": (
        e.Forbidden("method", "process/list"),
        "not allowed by the token: method 'process/list'; ask for a token that allows it",
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


def test_who_is_not_root_is_told_where_another_user_can_be_had() -> None:
    error = e.UserRefused("bob", e.UserFault.NOT_ROOT, "no")
    words = "cannot start anything as user 'bob': no"

    assert (
        str(explain(error, url=None))
        == f"{words}; run this as root, or name a server that runs as root with -H"
    )
    assert str(explain(error, url="ws://h:1")) == words


def test_without_a_server_there_is_none_to_start() -> None:
    assert str(explain(e.LinkLost("gone"))) == "the connection is lost: gone"


def test_a_page_that_another_server_sent_stays_on_one_line() -> None:
    page = "HTTP 200 OK: <html>\n<body>\r\n" + "x" * 500
    error = e.LinkLost(f"cannot reach ws://h:1: {page}", fault=F.PROTOCOL)
    words = str(explain(error, url="ws://h:1"))

    assert words.startswith("cannot reach ws://h:1: HTTP 200 OK: <html> <body> xxx")
    assert words.endswith("xxx...; check the URL")
    assert len(words) < 250


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("web", "holdfast kill web"),
        ("a b", "holdfast kill 'a b'"),
        ("$(id)", "holdfast kill '$(id)'"),
        ("--all", "holdfast kill -- --all"),
    ],
)
def test_what_to_type_means_the_process_and_nothing_else(name: str, words: str) -> None:
    """People copy it, and somebody else may have chosen the name."""
    assert command("kill", name) == words
    assert words in str(explain(e.NameTaken(name)))
