"""Who is let in: what a signed token says, when it counts, and what it allows.  The clock is a number."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.principal import EVERYTHING, Grant, Principal
from holdfast.server.auth import AUDIENCE, BAD_JWT, CLAIM, EARLY, EXPIRED, ISSUER, SignedAuth, grant_of
from tests.fakes.tokens import NOW, SECRET, asked, claimed, sealed, shown

# Claims.


@pytest.mark.parametrize(
    "payload",
    [b"", b"null", b"[]", b"5", b'"x"', b"{", b"\xff", b'{"exp":9999999999}}', b"[" * 100_000, b"{}"],
    ids=range(10),
)
def test_claims_are_an_object_and_say_when_they_end(payload: bytes) -> None:
    assert shown(sealed(payload)) == BAD_JWT


@pytest.mark.parametrize("claim", ["exp", "nbf"])
@pytest.mark.parametrize("moment", ["true", "false", f"{NOW}.0", f"{NOW}e0", f'"{NOW}"', "[]", "{}", '""'])
def test_moments_are_integers(claim: str, moment: str) -> None:
    """``true`` is one to Python, and a number with a fraction is one to many others."""
    assert shown(sealed(f'{{"exp":{NOW},"{claim}":{moment}}}'.encode())) == BAD_JWT


@pytest.mark.parametrize("moment", [..., None])
def test_an_end_is_needed_and_a_beginning_is_not(moment: object) -> None:
    assert shown(claimed(exp=moment)) == BAD_JWT
    assert shown(claimed(nbf=moment)) == Principal("")


@pytest.mark.parametrize("digits", [20, 40, 400])
def test_moments_may_be_far_away(digits: int) -> None:
    far = 10**digits

    assert shown(claimed(exp=far)) == Principal("")
    assert shown(claimed(exp=-far)) == EXPIRED
    assert shown(claimed(nbf=far)) == EARLY
    assert shown(claimed(nbf=-far)) == Principal("")


@pytest.mark.parametrize("skew", [0, 1, 30])
def test_a_token_is_good_up_to_its_end_and_the_skew_and_no_longer(skew: int) -> None:
    assert shown(claimed(exp=NOW - skew), skew=skew) == Principal("")
    assert shown(claimed(exp=NOW - skew - 1), skew=skew) == EXPIRED
    assert shown(claimed(exp=NOW - skew), skew=skew, clock=lambda: NOW + 0.001) == EXPIRED


@pytest.mark.parametrize("skew", [0, 1, 30])
def test_a_token_is_good_from_its_beginning_less_the_skew(skew: int) -> None:
    assert shown(claimed(nbf=NOW + skew), skew=skew) == Principal("")
    assert shown(claimed(nbf=NOW + skew + 1), skew=skew) == EARLY


def test_clocks_may_differ_by_half_a_minute_unless_said_otherwise() -> None:
    assert shown(claimed(exp=NOW - 30)) == Principal("")
    assert shown(claimed(exp=NOW - 31)) == EXPIRED


def test_the_clock_is_asked_each_time() -> None:
    moments = [NOW, NOW + 91, NOW]
    auth = SignedAuth(SECRET, clock=lambda: moments.pop(0))
    header = f"Bearer {claimed()}"

    assert [asked(auth, header) for _ in range(3)] == [Principal(""), EXPIRED, Principal("")]


@pytest.mark.parametrize("issuer", [..., None, "", "other", "ME", "me ", 5, ["me"], {"me": 1}, True])
def test_an_issuer_that_is_asked_for_must_be_it(issuer: object) -> None:
    assert shown(claimed(iss=issuer), issuer="me") == ISSUER


def test_the_right_issuer_is_let_in() -> None:
    assert shown(claimed(iss="me"), issuer="me") == Principal("", "me")


@pytest.mark.parametrize(
    "audience", [..., None, "", "other", "US", "us,them", 5, [], ["other"], [["us"]], {"us": 1}, [5, None]]
)
def test_an_audience_that_is_asked_for_must_be_there(audience: object) -> None:
    assert shown(claimed(aud=audience), audience="us") == AUDIENCE


@pytest.mark.parametrize("audience", ["us", ["us"], ["them", "us"], ["us", "us"]])
def test_the_right_audience_is_let_in(audience: object) -> None:
    assert shown(claimed(aud=audience), audience="us") == Principal("")


@pytest.mark.parametrize("audience", ["x", ["x"], 5, None])
def test_an_audience_that_nobody_asks_for_says_nothing(audience: object) -> None:
    assert shown(claimed(aud=audience)) == Principal("")


@pytest.mark.parametrize("claim", ["sub", "iss"])
@pytest.mark.parametrize("name", [None, 5, True, ["a"], {"a": 1}])
def test_a_name_that_is_no_text_is_refused(claim: str, name: object) -> None:
    """It would have to become one, and that might be somebody else's."""
    assert shown(sealed(json.dumps({"exp": NOW, claim: name}).encode())) == BAD_JWT


def test_a_name_that_cannot_be_written_down_is_refused() -> None:
    assert shown(sealed(b'{"exp":%d,"sub":"\\ud800"}' % NOW)) == BAD_JWT


def test_time_is_looked_at_before_names() -> None:
    """As other servers of this protocol do: a client with an old token learns that it is old."""
    options = {"issuer": "me", "audience": "us"}

    assert shown(claimed(exp=0, nbf=2 * NOW), **options) == EXPIRED
    assert shown(claimed(nbf=2 * NOW), **options) == EARLY
    assert shown(claimed(), **options) == ISSUER
    assert shown(claimed(iss="me", holdfast=5), **options) == AUDIENCE
    assert shown(claimed(iss="me", aud="us", holdfast=5), **options) == BAD_JWT


# What a token allows.


def test_the_claim_becomes_a_grant() -> None:
    claim = {
        "methods": ["process/*"],
        "roots": ["/a", "/"],
        "env": ["A_*"],
        "processes": 1,
        "retainedBytes": 2,
        "connections": 3,
        "sessions": 0,
        "users": ["build", "ci-*"],
    }
    grant = Grant(
        methods=("process/*",),
        roots=("/a", "/"),
        variables=("A_*",),
        processes=1,
        retained_bytes=2,
        connections=3,
        sessions=0,
        users=("build", "ci-*"),
    )

    assert CLAIM == "holdfast"
    assert grant_of(claim) == grant
    assert shown(claimed(sub="a", holdfast=claim)) == Principal("a", "", grant)


@pytest.mark.parametrize("claim", [{}, {"methods": None}, {"processes": None, "roots": None}])
def test_what_a_claim_does_not_say_is_allowed(claim: object) -> None:
    assert grant_of(claim) == EVERYTHING


@pytest.mark.parametrize("claim", [{}, {"users": None}, {"users": []}])
def test_other_users_are_allowed_only_if_a_claim_says_so(claim: object) -> None:
    assert grant_of(claim).users == ()


def test_an_empty_list_allows_nothing() -> None:
    assert grant_of({"methods": [], "roots": [], "env": []}) == Grant(methods=(), roots=(), variables=())


BAD_CLAIMS: list[object] = [
    None,
    5,
    "x",
    True,
    [],
    [["methods", []]],
    {"unknown": 1},
    {"Methods": ["x"]},
    {"variables": ["x"]},
    {"retained_bytes": 1},
    {"methods": "process/read"},
    {"methods": {"a": 1}},
    {"methods": [5]},
    {"methods": [None]},
    {"env": [["A"]]},
    {"users": "*"},
    {"users": [0]},
    {"roots": "/"},
    *(
        {"roots": [root]}
        for root in ("", "a", "./a", "/a/", "//a", "/a//b", "/a/.", "/a/../b", "/..", "/a\0")
    ),
    {"roots": ["/good", "bad"]},
    *(
        {name: value}
        for name in ("processes", "retainedBytes", "connections", "sessions")
        for value in (-1, True)
    ),
    {"processes": 1.5},
    {"processes": "1"},
    {"processes": [1]},
    {"processes": {}},
    {"processes": -(10**30)},
]


@pytest.mark.parametrize("claim", BAD_CLAIMS, ids=repr)
def test_a_claim_that_cannot_be_read_is_a_reason_to_refuse(claim: object) -> None:
    """It may be a restriction: whoever ignores it gives away more than the token's maker wanted."""
    assert shown(claimed(holdfast=claim)) == BAD_JWT
    with pytest.raises(ValueError):  # noqa: PT011  (the words are for people)
        grant_of(claim)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=4), lambda inner: (
    st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["methods", "roots", "env", "processes", "x"]), inner, max_size=3)
)))  # fmt: skip
def test_any_claim_is_either_a_grant_or_refused(claim: object) -> None:
    answer = shown(claimed(holdfast=claim))

    assert answer == BAD_JWT or isinstance(answer, Principal)
