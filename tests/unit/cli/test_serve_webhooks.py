"""Where clients may have ends told to, as the operator says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.main import parse
from holdfast.cli.serve_webhooks import BadWebhooks, webhooks_of
from holdfast.webhooks import WebhookPolicy

ALLOW = ("--webhook-allow", "https://h/x")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_bytes(b"s" * 32 + b"\n")
    return path


def test_without_the_options_nobody_is_notified() -> None:
    assert webhooks_of(parse(["serve"])) is None


def test_several_places_can_be_allowed(secret: Path) -> None:
    options = [*ALLOW, "--webhook-allow", "HTTP://H:80", "--webhook-secret-file", str(secret)]

    assert webhooks_of(parse(["serve", *options])) == WebhookPolicy(("https://h/x", "http://h/"), b"s" * 32)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (ALLOW, "requires `--webhook-secret-file`"),
        (("--webhook-secret-file", "SECRET"), "requires `--webhook-allow`"),
        ((*ALLOW, "--webhook-secret-file", "SECRET.none"), "cannot be read: No such file"),
        ((*ALLOW, "--webhook-secret-file", "/dev/null"), "at least 32 bytes"),
        (("--webhook-allow", "h/x", "--webhook-secret-file", "SECRET"), "--webhook-allow h/x: "),
    ],
)
def test_what_does_not_fit_together_is_refused(options: tuple[str, ...], words: str, secret: Path) -> None:
    arguments = parse(["serve", *(each.replace("SECRET", str(secret)) for each in options)])

    with pytest.raises(BadWebhooks) as caught:
        webhooks_of(arguments)

    assert words in str(caught.value)
