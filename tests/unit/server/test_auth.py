"""Who is let in: every rule of both kinds of tokens.  The clock is a number."""

from __future__ import annotations

import hashlib
import json
import logging
import traceback

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.principal import EVERYTHING, Principal
from holdfast.server.auth import (
    BAD_HEADER,
    BAD_JWT,
    BAD_TOKEN,
    MISSING,
    REASONS,
    Auth,
    CapabilityAuth,
    NotAdmitted,
)
from tests.fakes.tokens import NOW, SECRET, asked, claimed, part, sealed, shown, signature, signed

TOKEN = "s3cret-token"


def capability(text: str = TOKEN) -> CapabilityAuth:
    return CapabilityAuth(hashlib.sha256(text.encode()).digest())


# The words.


def test_the_words_are_those_of_the_protocol() -> None:
    """Byte for byte: clients compare them."""
    assert list(REASONS) == [
        "missing websocket bearer token",
        "invalid authorization header",
        "invalid websocket bearer token",
        "invalid websocket jwt",
        "expired websocket jwt",
        "websocket jwt is not valid yet",
        "websocket jwt issuer mismatch",
        "websocket jwt audience mismatch",
    ]


@pytest.mark.parametrize(("words", "reason"), REASONS.items())
def test_a_metric_has_one_word_for_each(words: str, reason: str) -> None:
    assert NotAdmitted(words).reason == reason
    assert reason.isalpha()


# The header.

BOTH = pytest.mark.parametrize("auth", [capability(), signed()], ids=["capability", "signed"])


@BOTH
def test_without_a_header_it_is_missing(auth: Auth) -> None:
    assert asked(auth, None) == MISSING


@BOTH
@pytest.mark.parametrize(
    "header",
    [
        "",
        " ",
        "Bearer",
        "Bearer ",
        "Bearer  \t ",
        f"Bearer\t{TOKEN}",
        TOKEN,
        f"Basic {TOKEN}",
        f"Token {TOKEN}",
        f"BearerX {TOKEN}",
        f" Bearer {TOKEN}",
        f"Bearer,{TOKEN}",
        "Bearer \u20ac",
        "Bearer \ud800",
    ],
)
def test_what_is_no_bearer_token_is_a_bad_header(auth: Auth, header: str) -> None:
    assert asked(auth, header) == BAD_HEADER


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
@pytest.mark.parametrize(("before", "after"), [("", ""), (" ", " "), ("  \t", "\t  "), ("", "\r\n")])
def test_the_scheme_has_no_case_and_the_token_no_space_around_it(
    scheme: str, before: str, after: str
) -> None:
    header = f"{scheme} {before}{TOKEN}{after}"

    assert asked(capability(), header) == Principal("token")


@given(st.none() | st.text(max_size=60) | st.text(max_size=60).map("Bearer ".__add__))
@example("Bearer .")
@example("Bearer ..")
@example("Bearer a.b.c.d")
@example("Bearer " + "." * 60_000)
@example("Bearer " + "A" * 60_000)
def test_whatever_is_in_a_header_nothing_else_is_ever_raised(header: str | None) -> None:
    assert asked(capability(), header) in (MISSING, BAD_HEADER, BAD_TOKEN)
    assert asked(signed(), header) in (MISSING, BAD_HEADER, BAD_JWT)


# Capability tokens.


@pytest.mark.parametrize(
    "text", ["", "x", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), f"{TOKEN} {TOKEN}", f"{TOKEN}, Bearer {TOKEN}"]
)
def test_another_token_is_refused(text: str) -> None:
    assert asked(capability(), f"Bearer {text}") in (BAD_TOKEN, BAD_HEADER)


def test_the_digest_is_no_token() -> None:
    """Who can read the options of the server must not be able to use them."""
    assert asked(capability(), f"Bearer {hashlib.sha256(TOKEN.encode()).hexdigest()}") == BAD_TOKEN


def test_everybody_with_the_token_is_one_principal_who_may_do_everything() -> None:
    first, second = (capability().admit(f"Bearer {TOKEN}") for _ in range(2))

    assert first == second == Principal("token", "", EVERYTHING)


@pytest.mark.parametrize("text", ["töken", "tokenà", "token…", "ключ"])
def test_a_token_beyond_ascii_is_compared_byte_by_byte(text: str) -> None:
    """Headers come as bytes; some of these end in one that looks like a space."""
    header = "Bearer " + text.encode().decode("latin-1")

    assert asked(capability(text), header) == Principal("token")


# Signatures.


def test_a_good_token_lets_its_principal_in() -> None:
    assert shown(claimed(sub="alice", iss="me")) == Principal("alice", "me", EVERYTHING)


def test_other_claims_and_other_parts_of_the_head_are_ignored() -> None:
    text = sealed(
        json.dumps({"exp": NOW, "iat": "x", "jti": [1], "aud": {}, "x": None}).encode(),
        b'{"alg":"HS256","typ":5,"x":"y"}',
    )

    assert shown(text) == Principal("")


@pytest.mark.parametrize(
    "secret", [b"another secret, which is long enough", SECRET + b"\n", SECRET[:-1], bytes(48)]
)
def test_another_secret_is_refused(secret: bytes) -> None:
    assert shown(claimed(secret=secret)) == BAD_JWT


def head_of(alg: object) -> bytes:
    return json.dumps({"alg": alg, "typ": "JWT"}).encode()


@pytest.mark.parametrize("alg", ["HS384", "HS512"])
def test_only_one_algorithm_is_taken_even_with_the_right_secret(alg: str) -> None:
    text = f"{part(head_of(alg))}.{part(json.dumps({'exp': NOW}).encode())}"

    assert shown(f"{text}.{part(signature(text, alg=alg))}") == BAD_JWT


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", "", None, 5, [], {}, ["HS256"], "hs256"])
@pytest.mark.parametrize("seal", ["", part(b""), "good"])
def test_a_token_cannot_choose_to_be_unsigned(alg: object, seal: str) -> None:
    payload = json.dumps({"exp": NOW}).encode()
    text = f"{part(head_of(alg))}.{part(payload)}"
    last = part(signature(text)) if seal == "good" else seal

    assert shown(f"{text}.{last}") == BAD_JWT


@pytest.mark.parametrize("alg", ["RS256", "ES256", "PS256", "EdDSA", "HS384", "HS512"])
def test_a_token_cannot_choose_what_our_secret_is(alg: str) -> None:
    """A signature that is good for another algorithm's head, made with the secret as its key."""
    assert shown(sealed(json.dumps({"exp": NOW}).encode(), head_of(alg))) == BAD_JWT


@pytest.mark.parametrize(
    "head",
    [b"", b"{}", b"[]", b"null", b"5", b'"HS256"', b"\xff", b"{", b"[" * 100_000, b'{"alg":"HS256"}x'],
    ids=range(10),
)
def test_a_head_that_is_none_is_refused(head: bytes) -> None:
    assert shown(sealed(json.dumps({"exp": NOW}).encode(), head)) == BAD_JWT


def test_a_token_whose_payload_is_elsewhere_is_refused() -> None:
    text = part(b'{"alg":"HS256","b64":false,"crit":["b64"]}') + "."

    assert shown(f"{text}.{part(signature(text))}") == BAD_JWT


def test_every_single_changed_character_is_noticed() -> None:
    good = claimed(sub="a")
    changed = [
        good[:at] + ("A" if good[at] != "A" else "B") + good[at + 1 :]
        for at in range(len(good) - 1)  # The last one has bits that mean nothing.
        if good[at] != "."
    ]

    assert {shown(text) for text in changed} == {BAD_JWT}


@pytest.mark.parametrize(
    "cut", ["", "a", "a.b", "{0}.", ".{0}", "{1}.{2}", "{1}.{2}.", "{1}..{3}", "{0}.{3}"]
)
def test_a_token_has_three_parts(cut: str) -> None:
    good = claimed()

    assert shown(cut.format(good, *good.split("."))) in (BAD_JWT, BAD_HEADER)


# Secrets stay where they are.

LEAKS = {
    "another capability token": (capability(), "wrong-s3cret"),
    "a token signed by somebody else": (signed(), claimed(secret=b"x" * 40, sub="wrong-s3cret")),
    "a token that is none": (signed(), "wrong-s3cret.x.y"),
    "claims that are none": (signed(), sealed(b"wrong-s3cret")),
    "an old token": (signed(), claimed(exp=0, sub="wrong-s3cret")),
    "a bad claim": (signed(), claimed(holdfast={"roots": ["wrong-s3cret"]})),
    "another issuer": (signed(issuer="me"), claimed(iss="wrong-s3cret")),
}


@pytest.mark.parametrize(("auth", "text"), LEAKS.values(), ids=LEAKS)
def test_neither_an_error_nor_the_log_shows_a_token_or_a_secret(
    auth: Auth, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    with pytest.raises(NotAdmitted) as caught:
        auth.admit(f"Bearer {text}")

    # As somebody would log it, with what it came from; a frame's line of source is no secret.
    said = "".join(traceback.format_exception_only(caught.value)) + repr(caught.value) + caplog.text
    assert (caught.value.__cause__, caught.value.__suppress_context__) in ((None, True), (None, False))
    if not caught.value.__suppress_context__:
        assert caught.value.__context__ is None
    for secret in (TOKEN, SECRET.decode(), text, "wrong-s3cret", *text.split(".")):
        assert secret not in said


@BOTH
def test_what_checks_tokens_shows_nothing_of_them(auth: Auth) -> None:
    for secret in (TOKEN, SECRET.decode(), hashlib.sha256(TOKEN.encode()).hexdigest()):
        assert secret not in repr(auth) + str(auth)
