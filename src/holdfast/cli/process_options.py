"""The options of ``run`` and ``exec``, of commands about processes that a server has, and of ``cp``."""

from __future__ import annotations

import argparse
import signal
from difflib import get_close_matches

from .options import Parser, add_detach_keys, add_names, add_output, add_quiet, add_server
from .quantities import (
    byte_count,
    byte_range,
    condition,
    count,
    duration,
    positive,
    positive_duration,
    terminal_size,
)
from .sandbox_options import add_sandbox

_GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL, unless ``--grace`` says otherwise."""


# Output.


def configure_attach(parser: Parser) -> None:
    """Add the options of ``attach``."""
    parser.passes_code = True
    parser.description = (
        "Follow a process of a server: see what it said and says, type to it.  ^C and sizes are passed on.\n"
        "The detach keys leave it running; so does the end of this command, ^C with --no-stdin or without\n"
        "a connection, and a second ^C that follows the first at once."
    )
    add_names(parser, several=False)
    parser.add_argument("--no-stdin", action="store_true", help="do not pass on what is typed")
    parser.add_argument(
        "--tail",
        metavar="N",
        type=count,
        help="begin with the last N lines of its output (default: all that is kept)",
    )
    add_detach_keys(parser)
    add_output(parser, "a line per piece of output, in base64 and, if UTF-8, as text; one for the end")
    add_quiet(parser, "print no messages of holdfast but errors")
    add_server(parser)


def configure_logs(parser: Parser) -> None:
    """Add the options of ``logs``."""
    parser.description = (
        "Print what a process of a server said up to now, also after its end.  What it says meanwhile is\n"
        "printed only with -f, which ^C leaves; the process goes on."
    )
    add_names(parser, several=False)
    parser.add_argument("-f", "--follow", action="store_true", help="go on until it has ended")
    parser.add_argument(
        "--tail", metavar="N", type=count, help="begin with the last N lines (default: all that is kept)"
    )
    parser.add_argument(
        "--since-seq",
        metavar="N",
        type=count,
        default=0,
        help="only output after number N, as -o json shows it",
    )
    parser.add_argument(
        "--bytes",
        metavar="RANGE",
        type=byte_range,
        help="only these bytes of its standard output or terminal, counted from 0 at its start: 0-99 are the"
        " first hundred, 100- is all behind them, -100 are the last hundred",
    )
    parser.add_argument(
        "--stderr", action="store_true", help="only its standard error; with --bytes, those bytes of it"
    )
    add_output(
        parser,
        "a line per piece of output: its number, its bytes in base64 and, if UTF-8, as text",
    )
    add_quiet(parser, "do not tell of output that is no longer kept")
    add_server(parser)


# Questions and orders.


def configure_ps(parser: Parser) -> None:
    """Add the options of ``ps``."""
    parser.description = (
        "Show the processes of a server: those that run, or all that it still knows.  In names and command\n"
        "lines that others have chosen, characters that cannot be printed are shown as escapes; '-o json'\n"
        "has them as they are."
    )
    parser.add_argument("-a", "--all", action="store_true", help="show also those that have ended")
    parser.add_argument(
        "--waiting", action="store_true", help="look at each one: does it wait for input, as a prompt does?"
    )
    parser.add_argument(
        "--no-trunc", action="store_true", help="show names, identifiers and command lines whole"
    )
    add_quiet(parser, "print only names; the identifier where another process has the name by now")
    add_output(parser)
    add_server(parser)


def configure_wait(parser: Parser) -> None:
    """Add the options of ``wait``."""
    parser.passes_code = True
    parser.description = (
        "Wait until processes have ended.  The exit code is that of the process; of several, that of the\n"
        "first one in the order given that is not 0.  Of several, the codes are printed, one per line.\n"
        "With --for, wait until a process is ready: the exit code is 0 then.  If it ends before, the exit\n"
        "code is that of the process, or 125 in place of 0; it is 124 if the time is over before."
    )
    add_names(parser, several=True)
    parser.add_argument(
        "--for",
        dest="condition",
        metavar="WHAT",
        type=condition,
        help="port:8080, url:http://localhost:8080/health, output:REGEX or file:/PATH, on the server's host",
    )
    parser.add_argument(
        "--timeout", metavar="TIME", type=duration, help="how long to wait for it (default: for ever)"
    )
    add_output(parser)
    add_quiet(parser, "print nothing")
    add_server(parser)


def configure_kill(parser: Parser) -> None:
    """Add the options of ``kill``."""
    parser.description = (
        "End processes and everything they have started: SIGTERM, then SIGKILL once the grace is over.\n"
        "Several are ended at the same time.  Returns when they are gone."
    )
    add_names(parser, several=True)
    _add_grace(parser)
    add_output(parser)
    add_quiet(parser, "print nothing")
    add_server(parser)


def configure_restart(parser: Parser) -> None:
    """Add the options of ``restart``."""
    parser.description = (
        "Start processes again, with the same command, directory and variables, and under their names.\n"
        "Those that run are ended first, as kill does."
    )
    add_names(parser, several=True)
    _add_grace(parser)
    add_output(parser)
    add_quiet(parser, "print nothing")
    add_server(parser)


def configure_remove(parser: Parser) -> None:
    """Add the options of ``rm``."""
    parser.description = (
        "Forget processes that have ended, and what they said.  Nothing of them is in ps -a any more."
    )
    add_names(parser, several=True)
    parser.add_argument("-f", "--force", action="store_true", help="end those that run, as kill does")
    _add_grace(parser)
    add_output(parser)
    add_quiet(parser, "print nothing")
    add_server(parser)


def configure_prune(parser: Parser) -> None:
    """Add the options of ``prune``."""
    parser.description = "Forget every process of a server that has ended.  What runs is left alone."
    add_output(parser)
    add_quiet(parser, "print nothing")
    add_server(parser)


def _add_grace(parser: Parser) -> None:
    parser.add_argument(
        "--grace",
        metavar="TIME",
        type=duration,
        default=_GRACE,
        help="the time they have to end by themselves; 0 for none (default: 5s)",
    )


def configure_signal(parser: Parser) -> None:
    """Add the options of ``signal``."""
    parser.description = "Send a signal to the group of a process, such as INT, SIGHUP or 10."
    add_names(parser, several=False)
    parser.add_argument("signal", metavar="SIGNAL", type=signal_number, help="its name or number")
    parser.add_argument(
        "--tree", action="store_true", help="send it also to everything the process has started"
    )
    add_output(parser)
    add_server(parser)


def signal_number(text: str) -> int:
    """Parse a signal: ``TERM``, ``SIGTERM``, ``sigterm`` or ``15``; an argparse ``type``."""
    name = text.upper() if text.upper().startswith("SIG") else f"SIG{text.upper()}"
    known = signal.Signals.__members__
    if name in known:
        return int(known[name])
    digits = text.isascii() and text.isdecimal()
    if digits and 0 < int(text) <= signal.SIGRTMAX:
        return int(text)
    close = [] if digits else get_close_matches(name, known, 1)
    hint = f"; did you mean {close[0]}?" if close else "; 'kill -l' lists them"
    raise argparse.ArgumentTypeError(f"there is no signal {text!r}{hint}")


def configure_write(parser: Parser) -> None:
    """Add the options of ``write``."""
    parser.description = (
        "Write to the standard input of a process: DATA as it is, or what comes on our standard input.\n"
        "Nothing is added; for the end of a line write it, as in $'ls\\n'."
    )
    add_names(parser, several=False)
    parser.add_argument("data", metavar="DATA", nargs="?", help="what to write (default: standard input)")
    parser.add_argument(
        "--eof", action="store_true", help="then end its input; in a terminal, type the end-of-file character"
    )
    add_output(parser)
    add_server(parser)


def configure_resize(parser: Parser) -> None:
    """Add the options of ``resize``."""
    parser.description = "Give the terminal of a process another size."
    add_names(parser, several=False)
    parser.add_argument("size", metavar="ROWSxCOLS", type=terminal_size, help="such as 24x80")
    add_output(parser)
    add_server(parser)


# Files.


def configure_cp(parser: Parser) -> None:
    """Add the options of ``cp``."""
    parser.description = (
        "Copy files between here and a server.  A path on the server begins with a colon,\n"
        "and is relative to the server's directory unless a slash follows:\n"
        "'holdfast cp -r ./site :/srv/site'."
    )
    parser.epilog = (
        "'-' is the standard input or output: 'holdfast cp :/etc/hosts -', 'date | holdfast cp - :now'.\n\n"
        "A copy of a file to here gets its name when it is complete.  One to the server that breaks off\n"
        "is removed.  New files get the mode of the original; those that are there keep theirs.  Owners\n"
        "and times are not copied.\n\n"
        "Directories go as one stream, with the modes of all files and with links as links.  Files that\n"
        "are in the way are replaced.  Pipes, sockets and devices are left out.\n\n"
        "A file that changes its length while it is copied is told of, and the exit code is 125.  One\n"
        "that became longer is copied as long as it was; one that became shorter is not copied."
    )
    parser.add_argument(
        "source", metavar="SRC", help="what to copy; ':PATH' is on the server, '-' is the standard input"
    )
    parser.add_argument(
        "target", metavar="DST", help="where to; ':PATH' is on the server, '-' is the standard output"
    )
    parser.add_argument(
        "-r", "--recursive", action="store_true", help="copy directories, with all that is in them"
    )
    parser.add_argument(
        "--outside-links", action="store_true", help="with -r from a server: keep links that lead out of SRC"
    )
    add_quiet(parser, "show no progress, and say nothing of what is left out")
    add_output(parser)
    add_server(parser, embedded=True)


def configure_run(parser: Parser) -> None:
    """Add the options of ``run``."""
    parser.description = (
        "Run a program as if this terminal had started it: its output is printed here, and its exit code\n"
        "is that of this command.  A server keeps the process: it outlives this command, and ps, attach,\n"
        "logs and wait find it by its name.  If this command follows it to its end, it is forgotten then."
    )
    parser.add_argument("-d", "--detach", action="store_true", help="start it, print its name and leave")
    parser.add_argument("--rm", action="store_true", help="remove it from all lists once it has ended")
    parser.add_argument(
        "--notify",
        metavar="URL",
        help="have the server send its end there; the server's --webhook-allow must name that place",
    )
    parser.add_argument(
        "--replace", action="store_true", help="first end the process that runs under this --name"
    )
    parser.add_argument(
        "--idempotent",
        action="store_true",
        help="follow the process that the same command line has started under this --name, if there is one",
    )
    _configure(parser)


def configure_exec(parser: Parser) -> None:
    """Add the options of ``exec``: those of ``run``, except ``-d``."""
    parser.description = (
        "Run a program as run does.  On a server it ends when this command ends, as with ssh."
    )
    parser.set_defaults(detach=False, rm=False, replace=False, idempotent=False, notify=None)
    _configure(parser)


def _configure(parser: Parser) -> None:
    parser.passes_code = True
    parser.usage = f"{parser.prog} [OPTION ...] [--] PROGRAM [ARGUMENT ...]"
    parser.epilog = (
        "exit codes: the program's own; 128 + n after signal n; 124 after a timeout; 125 if holdfast\n"
        "failed; 126 if the program cannot be run; 127 if there is none"
    )
    parser.add_argument(
        "-i",
        "--interactive",
        action="store_true",
        help="pass on standard input also if it is a terminal; pipes and files are always passed on",
    )
    parser.add_argument("-t", "--tty", action="store_true", help="give it a terminal")
    parser.add_argument("--name", metavar="NAME", help="its name (default: one such as brisk-otter)")
    parser.add_argument("-w", "--workdir", metavar="DIR", help="the directory to run it in")
    parser.add_argument(
        "--user",
        metavar="NAME",
        help="run it as this user, by name, UID or UID:GID; needs a server that is root",
    )
    parser.add_argument(
        "-e",
        "--env",
        metavar="NAME[=VALUE]",
        action="append",
        default=[],
        help="a variable for it; without a value, that of this command",
    )
    parser.add_argument(
        "--env-file", metavar="FILE", action="append", default=[], help="variables, one NAME=VALUE per line"
    )
    _add_limits(parser)
    add_sandbox(parser)
    _add_recording(parser)
    add_detach_keys(parser)
    add_output(parser, "a line per piece of output, in base64 and, if UTF-8, as text; one for the end")
    add_quiet(parser, "print no messages of holdfast but errors")
    add_server(parser, embedded=True)
    parser.add_argument("argv", metavar="PROGRAM", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout", metavar="TIME", type=positive_duration, help="end it after this time, such as 30s or 5m"
    )
    parser.add_argument(
        "--idle-timeout",
        metavar="TIME",
        type=positive_duration,
        help="end it after this time without output and input",
    )
    parser.add_argument(
        "--grace", metavar="TIME", type=duration, help="the time between SIGTERM and SIGKILL when it is ended"
    )
    parser.add_argument(
        "--output-limit",
        metavar="BYTES",
        type=byte_count,
        help="the most output, such as 10m; beyond that it is ended",
    )
    parser.add_argument(
        "--truncate",
        action="store_true",
        help="let it run on beyond --output-limit, and drop its further output",
    )
    parser.add_argument(
        "--memory", metavar="BYTES", type=byte_count, help="the most memory it may use, such as 512m"
    )
    parser.add_argument(
        "--cpu",
        metavar="TIME",
        type=positive_duration,
        help="the most processor time it may use, such as 10s",
    )
    parser.add_argument("--pids", metavar="N", type=positive, help="the most processes it may have at once")
    parser.add_argument(
        "--retain",
        metavar="BYTES",
        type=byte_count,
        help="how much of its output the server keeps, such as 16m",
    )


def _add_recording(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--record", metavar="FILE", help="with -t: record what is shown, as asciicast, which asciinema plays"
    )
    parser.add_argument(
        "--record-on-host",
        metavar="PATH",
        help="with -t: have the host of the program record it to a new file there, also with -d",
    )
    parser.add_argument(
        "--record-input", action="store_true", help="record what is typed, too, passwords included"
    )
