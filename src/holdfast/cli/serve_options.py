"""The options of commands about a server: ``serve`` with its limits, ``schema`` and ``token``.

Every limit in ``holdfast.config`` can be set with ``--limit NAME=VALUE``.  A few have an option of their
own, because other servers of this protocol have it; ``--limit`` takes precedence over those.
"""

from __future__ import annotations

import argparse
from typing import Any, get_type_hints

from holdfast.config import AppLimits, ServerLimits
from holdfast.dialects.endpoints import AUTO, ENDPOINTS
from holdfast.host.sandbox.backends import SANDBOX_BACKENDS
from holdfast.value import replace

from .options import Parser, add_output
from .quantities import byte_count, count, duration, positive, positive_duration

CLOCK_SKEW = 30
"""Seconds by which the clocks of server and token issuer may differ, unless an option says otherwise."""

SANDBOX_AUTO, SANDBOX_OFF = "auto", "off"
"""Choices of ``--sandbox`` beside the names of sandbox backends."""

DURABILITY_AUTO, DURABILITY_ON, DURABILITY_OFF = "auto", "on", "off"
"""Choices of ``--durability``."""

GONE_LIMITS = {"connection.frame_bytes": "one frame may be as large as one message, connection.message_bytes"}
"""Limits of the version before: accepted with a warning, which says why they are gone, and ignored."""

LimitSetting = tuple[str, str, float | None]
"""A ``--limit``: the part of the limits, the limit in it, and the value."""


def configure(parser: Parser) -> None:
    """Add the options of ``serve``."""
    parser.description = "Serve processes to programs.  Prints the URL of each listener, one per line."
    parser.epilog = (
        "examples:\n"
        "  holdfast serve                                   a free port on the loopback interface\n"
        "  holdfast serve --listen ws://127.0.0.1:8765      a port of your choice\n"
        "  holdfast serve --listen unix:///run/hf.sock      a Unix socket that only you can reach\n"
        "  holdfast serve --listen stdio                    one client, on standard input and output\n"
    )
    parser.add_argument(
        "--listen",
        metavar="URL",
        action="append",
        help="ws://IP:PORT (port 0 takes a free one), wss://IP:PORT, unix://PATH or stdio; may be repeated"
        " (default: ws://127.0.0.1:0)",
    )
    parser.add_argument(
        "--endpoint",
        choices=(*(row.name for row in ENDPOINTS), AUTO),
        default=AUTO,
        help="the protocol to speak; auto lets the client's first message decide (default: auto)",
    )
    parser.add_argument(
        "--concurrent-requests",
        metavar="N",
        type=positive,
        default=1,
        help="accepted for compatibility: requests of a connection never wait for each other",
    )
    parser.add_argument(
        "--retain-detached-bytes",
        metavar="BYTES",
        type=byte_count,
        help="output kept per process while its client is away, such as 256m (default: 64 MiB)",
    )
    parser.add_argument(
        "--retain-total-bytes",
        metavar="BYTES",
        type=byte_count,
        help="output kept for all processes together, such as 256m (default: 1 GiB)",
    )
    _add_guarantees(parser)
    _add_screens(parser)
    _add_webhooks(parser)
    _add_limit(parser)
    _add_app(parser)
    add_access(parser)
    _add_observation(parser)
    add_audit(parser)
    parser.add_argument(
        "--hint",
        metavar="TEXT",
        help="a line to print after each URL, with {url} in it for the URL; not with -o json",
    )
    add_output(parser, 'a line {"url": URL} per listener')


def _add_guarantees(parser: Parser) -> None:
    parser.add_argument(
        "--sandbox",
        choices=(SANDBOX_AUTO, *(row.name for row in SANDBOX_BACKENDS), SANDBOX_OFF),
        default=SANDBOX_AUTO,
        help="what enforces sandboxes; auto takes the best that works here, off refuses them (default: auto)",
    )
    parser.add_argument(
        "--durability",
        choices=(DURABILITY_AUTO, DURABILITY_ON, DURABILITY_OFF),
        default=DURABILITY_AUTO,
        help="whether processes of the exec endpoint outlive a crash of the server; auto: where the host can"
        " do it and nobody is served on standard input (default: auto)",
    )


def _add_screens(parser: Parser) -> None:
    parser.add_argument(
        "--screens",
        choices=("on", "off"),
        help="whether the server keeps the screens of terminals, so that 'attach' draws the screen, not all"
        " output (default: on where the extra 'screen' is installed)",
    )


def _add_webhooks(parser: Parser) -> None:
    parser.add_argument(
        "--webhook-allow",
        metavar="URL",
        action="append",
        help="a scheme, a host and the beginning of a path: clients may have the ends of their processes sent"
        " there and below; may be repeated (default: nowhere)",
    )
    parser.add_argument(
        "--webhook-secret-file",
        metavar="PATH",
        help="the file with the secret that signs what is sent; at least 32 bytes",
    )


def configure_schema(parser: Parser) -> None:
    """Add the options of ``schema``."""
    parser.description = (
        "Print the messages of an endpoint as a schema, for validators and generators of clients."
    )
    parser.epilog = (
        "Without --endpoint, both endpoints are in one document:\n"
        "  json-schema   a schema that takes the messages of either; each is below $defs\n"
        "  typescript    a namespace for each\n"
        "  openrpc       an object with a document for each, because method names repeat\n"
    )
    parser.add_argument(
        "--format",
        choices=("json-schema", "typescript", "openrpc"),
        default="json-schema",
        help="what to write (default: json-schema, draft 2020-12)",
    )
    parser.add_argument(
        "--endpoint", choices=tuple(row.name for row in ENDPOINTS), help="only this one (default: both)"
    )


def _add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit",
        metavar="NAME=VALUE",
        action="append",
        type=limit_setting,
        default=[],
        help="change a bound, for example connection.connections=100, engine.retained_bytes=512m or"
        " session.detached_seconds=5m; may be repeated; the documentation lists them all",
    )


def _add_app(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--drain",
        metavar="SECONDS",
        type=_seconds,
        help="app endpoint: how long after an exit to wait for output that others hold open (default: 2)",
    )
    parser.add_argument(
        "--process-quiet",
        metavar="SECONDS",
        type=_seconds,
        help="app endpoint: silence after a process has exited that ends its output; 0: none (default: 0)",
    )
    parser.add_argument(
        "--command-quiet",
        metavar="SECONDS",
        type=_seconds,
        help="app endpoint: silence after the exit of a command that ends its output (default: 0.05)",
    )
    parser.add_argument(
        "--command-sandbox",
        choices=("read-only", "workspace-write", "danger-full-access"),
        default="read-only",
        help="app endpoint: the sandbox of a command that comes without a policy (default: read-only)",
    )


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return value


def add_access(parser: argparse.ArgumentParser) -> None:
    """Add the options about tokens and certificates."""
    group = parser.add_argument_group("who may connect")
    group.add_argument(
        "--ws-auth",
        choices=("capability-token", "signed-bearer-token"),
        help="ask WebSocket clients for a bearer token: one for all, or signed ones (JWT, HS256)",
    )
    group.add_argument("--ws-token-file", metavar="PATH", help="the file with the capability token")
    group.add_argument("--ws-token-sha256", metavar="HEX", help="the SHA-256 digest of the capability token")
    group.add_argument(
        "--ws-shared-secret-file",
        metavar="PATH",
        help="the file with the secret that signs tokens, at least 32 bytes; holdfast token makes them",
    )
    group.add_argument("--ws-issuer", metavar="NAME", help="the issuer that a signed token must have")
    group.add_argument("--ws-audience", metavar="NAME", help="the audience that a signed token must have")
    group.add_argument(
        "--ws-max-clock-skew-seconds",
        metavar="SECONDS",
        type=count,
        help=f"how far clocks may differ (default: {CLOCK_SKEW})",
    )
    group.add_argument(
        "--tls-cert",
        metavar="PATH",
        help="the certificate of wss:// listeners, in PEM format, with those that vouch for it",
    )
    group.add_argument(
        "--tls-key", metavar="PATH", help="its private key, if it is not in the file of the certificate"
    )


def _add_observation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metrics", action="store_true", help="answer GET /metrics, for Prometheus, on every listener"
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="the least severe messages to print on standard error (default: warning)",
    )
    parser.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="lines for people, or one JSON object per line (default: text)",
    )


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Add the options of the audit log."""
    group = parser.add_argument_group("audit log")
    group.add_argument(
        "--audit-log",
        metavar="PATH",
        help="append a line of JSON for each client, each process it starts and how that ended;"
        " SIGHUP opens the file anew; what cannot be written there is not started",
    )
    group.add_argument(
        "--audit-redact",
        metavar="NAME",
        action="append",
        default=[],
        help="a name, * for any run of characters, whose values are left out of arguments, beside those"
        " that look like keys, secrets, tokens, passwords and credentials; may be repeated",
    )


# Limits.

_PARTS = get_type_hints(ServerLimits)


def limits_of(arguments: argparse.Namespace) -> ServerLimits:
    """Return the limits of a server: the defaults, changed by single options, then by ``--limit``."""
    limits = ServerLimits(app=_app_limits(arguments))
    if arguments.retain_total_bytes is not None:
        limits = replace(limits, engine=replace(limits.engine, retained_bytes=arguments.retain_total_bytes))
    if arguments.retain_detached_bytes is not None:
        detached = replace(limits.session, detached_bytes=arguments.retain_detached_bytes)
        limits = replace(limits, session=detached)
    return apply_limits(limits, arguments.limit)


def _app_limits(arguments: argparse.Namespace) -> AppLimits:
    limits = AppLimits()
    if arguments.drain is not None:
        limits = replace(limits, drain_seconds=arguments.drain)
    # A silence of 0 seconds would end the output at once, so 0 stands for no such end.
    if arguments.process_quiet is not None:
        limits = replace(limits, process_quiet_seconds=arguments.process_quiet or None)
    if arguments.command_quiet is not None:
        limits = replace(limits, command_quiet_seconds=arguments.command_quiet or None)
    return replace(limits, command_policy=arguments.command_sandbox)


def limit_names() -> list[str]:
    """Return the names of all limits, as ``--limit`` takes them."""
    return [f"{part}.{field}" for part, kind in _PARTS.items() for field in _numbers(kind)]


def limit_values(limits: ServerLimits) -> dict[str, float]:
    """Return the value of each limit that is set, by its name."""
    parts = {part: getattr(limits, part) for part in _PARTS}
    found = {
        f"{part}.{field}": getattr(group, field)
        for part, group in parts.items()
        for field in _numbers(type(group))
    }
    return {name: value for name, value in found.items() if value is not None}


def limit_setting(text: str) -> LimitSetting:
    """Parse a ``--limit``; an argparse ``type``."""
    name, equals, value = text.partition("=")
    part, _, field = name.partition(".")
    is_gone = name in GONE_LIMITS
    if not equals or not (is_gone or (part in _PARTS and field in _numbers(_PARTS[part]))):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE with the name of a limit")
    return part, field, _limit_value(field, value)


def apply_limits(limits: ServerLimits, settings: list[LimitSetting]) -> ServerLimits:
    """Return the limits with these changes; of two for one limit the last one counts."""
    for part, field, value in settings:
        if f"{part}.{field}" in GONE_LIMITS:
            continue
        limits = replace(limits, **{part: replace(getattr(limits, part), **{field: value})})
    return limits


def ignored_limits(settings: list[LimitSetting]) -> list[str]:
    """Return a sentence for each setting of a limit that no longer exists."""
    names = [f"{part}.{field}" for part, field, _ in settings]
    return [f"--limit {name} is ignored: {GONE_LIMITS[name]}" for name in names if name in GONE_LIMITS]


def _numbers(kind: type) -> dict[str, Any]:
    """Return the fields that are numbers; the classes of limits have other settings, too."""
    hints = get_type_hints(kind)
    return {name: hint for name, hint in hints.items() if hint is not str}


def _limit_value(field: str, text: str) -> float | None:
    """Parse a value in the unit that the name of the limit ends with."""
    if field.endswith("_quiet_seconds"):
        return duration(text) or None  # As above: 0 stands for no such end.
    if field.endswith("_seconds"):
        return duration(text)
    if field.endswith(("_bytes", "buffered_total")):
        return byte_count(text)
    return positive(text)


# Tokens for servers.


def configure_token(parser: Parser) -> None:
    """Add the options of ``token``."""
    parser.description = (
        "Make a token for a server with --ws-auth signed-bearer-token, and print it.  What is not restricted"
        " here is allowed."
    )
    parser.epilog = (
        "examples:\n"
        "  holdfast token --secret-file secret --subject alice --expires 8h >alice.token\n"
        "  holdfast token --secret-file secret --subject ci --root /srv/ci --env 'CI_*' --processes 50\n"
        "  holdfast token --secret-file secret --subject scraper --method metrics --expires 365d\n"
    )
    parser.add_argument(
        "--secret-file",
        metavar="PATH",
        required=True,
        help="the file with the secret of the server's --ws-shared-secret-file",
    )
    parser.add_argument(
        "--subject",
        metavar="NAME",
        required=True,
        help="whom it is for: clients of one name share sessions and quotas, others see nothing of them",
    )
    parser.add_argument(
        "--expires",
        metavar="TIME",
        type=positive_duration,
        default=3600.0,
        help="for how long it may be used to connect, for example 15m, 8h or 30d (default: 1h)",
    )
    parser.add_argument("--issuer", metavar="NAME", help="the server's --ws-issuer")
    parser.add_argument("--audience", metavar="NAME", help="the server's --ws-audience")
    _add_grant(parser)
    add_output(parser, "the token and what it says, as an object")


def _add_grant(parser: argparse.ArgumentParser) -> None:
    """Add what a token may restrict."""
    group = parser.add_argument_group("what it allows")
    group.add_argument(
        "--method",
        metavar="PATTERN",
        action="append",
        help="a method, * for any run of characters: 'process/*', 'fs/read*'; metrics for GET /metrics;"
        " may be repeated",
    )
    group.add_argument(
        "--root",
        metavar="PATH",
        action="append",
        help="an absolute path: programs start, and files are reached, only there and below; may be repeated",
    )
    group.add_argument(
        "--env",
        metavar="PATTERN",
        action="append",
        help="a variable that programs may have, * for any run of characters; may be repeated",
    )
    group.add_argument(
        "--user",
        metavar="PATTERN",
        action="append",
        help="a user, beside that of the server, that programs may be run as, * for any run of characters;"
        " may be repeated",
    )
    group.add_argument("--processes", metavar="N", type=count, help="processes at once")
    group.add_argument(
        "--retained-bytes",
        metavar="BYTES",
        type=byte_count,
        help="output kept for all of them, 64m for example",
    )
    group.add_argument("--connections", metavar="N", type=count, help="connections at once")
    group.add_argument("--sessions", metavar="N", type=count, help="sessions at once")
