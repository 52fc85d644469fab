"""The options of ``holdfast fetch``: a URL, and what to send there."""

from __future__ import annotations

import argparse

from .options import Parser, add_quiet, add_server
from .quantities import positive_duration


def configure_fetch(parser: Parser) -> None:
    """Add the options."""
    parser.description = (
        "Make an HTTP request from the host of a server, or from this one, and print the body of the\n"
        "response.  It is printed as it comes, and nothing of it is decoded."
    )
    parser.epilog = (
        "exit codes: 0 if there is a response, whatever its status; 22 with --fail if the status is 400 or\n"
        "more; 124 after a timeout; 125 if there is no response, or not all of it\n\n"
        "examples:\n"
        "  holdfast fetch -H ws://build-box:8765 http://localhost:3000/health\n"
        "  holdfast fetch --header 'accept: application/json' -d @question.json -o answer.json URL\n"
    )
    parser.add_argument("target", metavar="URL", help="http or https, as that host sees it")
    parser.add_argument(
        "-X",
        "--method",
        metavar="METHOD",
        help="the method (default: GET, or POST if there is something to send)",
    )
    parser.add_argument(
        "--header",
        metavar="'NAME: VALUE'",
        action="append",
        default=[],
        type=header,
        help="a header to send; may be repeated",
    )
    parser.add_argument(
        "-d",
        "--data",
        metavar="DATA",
        help="what to send as the body: a text, @FILE, or @- for standard input; at most 47 MiB",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write there and not to standard output; FILE gets its name when all of it is there",
    )
    parser.add_argument(
        "-i", "--include", action="store_true", help="print the status and the headers in front of the body"
    )
    parser.add_argument(
        "-f",
        "--fail",
        action="store_true",
        help="if the status is 400 or more, print no body and exit with 22",
    )
    parser.add_argument("--no-follow", action="store_true", help="do not follow redirects: print them")
    parser.add_argument(
        "--timeout", metavar="TIME", type=positive_duration, help="give up after this time, such as 30s"
    )
    add_quiet(parser, "say nothing of the status that --fail refuses")
    add_server(parser, embedded=True)


def header(text: str) -> tuple[str, str]:
    """Parse a header; an argparse ``type``."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is no header: write 'NAME: VALUE'")
    return name.strip(), value.strip()
