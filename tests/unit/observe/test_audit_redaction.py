"""Secrets in arguments: what is hidden, what is not, and that no text takes long."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.observe.audit import HIDDEN, SECRET_NAMES, Redaction

SECRET = "s3cr3t"
H = HIDDEN

HIDING = {
    "header": (["curl", "-H", f"Authorization: Bearer {SECRET}"], ["curl", "-H", f"Authorization: {H}"]),
    "header of another kind": (["x", f"X-Api-Key: {SECRET} and more"], ["x", f"X-Api-Key: {H}"]),
    "cookie": (["x", f"Cookie: a=1; b={SECRET}"], ["x", f"Cookie: {H}"]),
    "option and value": (["x", "--password", SECRET, "y"], ["x", "--password", H, "y"]),
    "option with value": (["x", f"--password={SECRET}"], ["x", f"--password={H}"]),
    "with blanks": (["x", f"--password={SECRET} of three words"], ["x", f"--password={H}"]),
    "with quotes": (["x", f"""--password=a"b'{SECRET}"""], ["x", f"--password={H}"]),
    "one dash": (["java", f"-Dapi.key={SECRET}"], ["java", f"-Dapi.key={H}"]),
    "one dash, apart": (["x", "-token", SECRET], ["x", "-token", H]),
    "after another that needs none": (["x", "--auth", "--password", SECRET], ["x", "--auth", H, H]),
    "mysql": (["mysql", f"--password={SECRET}", "-uroot"], ["mysql", f"--password={H}", "-uroot"]),
    "prefix": (["env", f"TOKEN={SECRET}", "make"], ["env", f"TOKEN={H}", "make"]),
    "prefix in a shell": (["sh", "-c", f"TOKEN={SECRET} make"], ["sh", "-c", f"TOKEN={H} make"]),
    "quoted in a shell": (["sh", "-c", f"T_KEY='a {SECRET}' make"], ["sh", "-c", f"T_KEY={H} make"]),
    "joined in a shell": (["sh", "-c", f"x; T_KEY=a'b '{SECRET} y"], ["sh", "-c", f"x; T_KEY={H} y"]),
    "header in a shell": (
        ["sh", "-c", f'curl -H "Authorization: Token {SECRET}" url'],
        ["sh", "-c", f'curl -H "Authorization: {H}" url'],
    ),
    "bare header": (
        ["sh", "-c", f"h authorization: basic {SECRET} x"],
        ["sh", "-c", f"h authorization: {H} x"],
    ),
    "URL": (["git", "clone", f"https://me:{SECRET}@host/x"], ["git", "clone", f"https://{H}@host/x"]),
    "URL with two": (["x", f"pg://me:p@{SECRET}@host"], ["x", f"pg://{H}@host"]),
    "query": (["curl", f"https://host/?a=1&token={SECRET}"], ["curl", f"https://host/?a=1&token={H}"]),
    "JSON": (["x", f'{{"password": "{SECRET}", "a": 1}}'], ["x", f'{{"password": {H}, "a": 1}}']),
    "JSON with an escape": (
        ["x", f'{{"password":"a\\"b {SECRET}","a":1}}'],
        ["x", f'{{"password":{H},"a":1}}'],
    ),
    "JSON in JSON": (["x", f'"{{\\"token\\": \\"a {SECRET}\\"}}"'], ["x", f'"{{\\"token\\": {H}}}"']),
    "Python": (["python", "-c", f"f(api_key='{SECRET}', x=1)"], ["python", "-c", f"f(api_key={H}, x=1)"]),
    "any case": (["x", f"MyPassWord={SECRET}"], ["x", f"MyPassWord={H}"]),
    "pair in a pair": (["x", f"--opt=password={SECRET}"], ["x", f"--opt=password={H}"]),
    "yaml": (["x", f"a: 1\ntoken:   {SECRET}\nb: 2"], ["x", f"a: 1\ntoken:   {H}\nb: 2"]),
}


@pytest.mark.parametrize("case", HIDING)
def test_secrets_are_hidden_and_the_rest_is_shown(case: str) -> None:
    argv, shown = HIDING[case]

    assert Redaction().arguments(argv) == shown


PLAIN = [
    ["ls", "-l", "/srv/data"],
    ["make", "CC=gcc", "-j8"],
    ["curl", "-H", "Accept: text/html", "https://host/path?x=1"],
    ["python", "-c", "print(1 == 2)"],
    ["git", "log", "--format=%H", "a@b"],
    [],
    [""],
]


@pytest.mark.parametrize("argv", PLAIN, ids=str)
def test_what_is_no_secret_is_shown_as_it_is(argv: list[str]) -> None:
    assert Redaction().arguments(argv) == argv


@pytest.mark.parametrize(
    "argv", [["mysql", f"-p{SECRET}"], ["curl", "-u", f"me:{SECRET}"], ["redis-cli", "auth", SECRET]], ids=str
)
def test_what_nobody_can_tell_to_be_a_secret_is_shown(argv: list[str]) -> None:
    """The documentation says so: only a variable is safe."""
    assert Redaction().arguments(argv) == argv


def test_further_names_may_be_given() -> None:
    redaction = Redaction(["PIN", "x-*-id", "a*b*c"])

    argv = ["x", "--pin=1", "--spin=1", "X-My-Id: 1", "--aXbYc", "1", "acb=1", "--x-id=1"]
    assert redaction.arguments(argv) == [
        "x", f"--pin={H}", "--spin=1", f"X-My-Id: {H}", "--aXbYc", H, "acb=1", "--x-id=1",
    ]  # fmt: skip


def test_long_arguments_and_many_of_them_are_cut() -> None:
    """A secret behind the cut is not shown, and one before it is hidden."""
    redaction = Redaction()
    long = "x" * 1000 + " token=" + SECRET * 100

    assert redaction.text("y" * 1024) == "y" * 1024
    assert redaction.text("y" * 1025) == "y" * 1024 + "..."
    assert redaction.text(long) == "x" * 1000 + f" token={H}"
    assert redaction.arguments(["a"] * 65) == ["a"] * 64 + ["... 1 more"]


NAMES = st.sampled_from([name.replace("*", fill) for name in SECRET_NAMES for fill in ("", "X", "-my.", "_")])
SECRETS = st.text(string.ascii_letters + string.digits + "+/=_-.!#%", min_size=1).map(lambda s: f"q7{s}7q")
ANY = st.text().filter(lambda text: "q7" not in text)
FORMS = st.sampled_from(
    [
        "--{n}={s}",
        "{n}={s}",
        "{n}: {s}",
        "{n}: Bearer {s}",
        "a {n}={s} b",
        "a {n}='{s}' b",
        'a "{n}": "{s}" b',
    ]
)


@given(name=NAMES, secret=SECRETS, form=FORMS, before=st.lists(ANY), after=st.lists(ANY))
def test_a_value_behind_a_secret_name_is_never_shown(
    name: str, secret: str, form: str, before: list[str], after: list[str]
) -> None:
    argv = [*before, form.format(n=name, s=secret), f"--{name}", secret, *after]

    assert secret not in "".join(Redaction().arguments(argv))


@given(name=NAMES, secret=SECRETS, value=st.dictionaries(ANY, ANY), indent=st.sampled_from([None, 1]))
def test_a_value_in_json_is_never_shown(
    name: str, secret: str, value: dict[str, str], indent: int | None
) -> None:
    """Nor in JSON that is a text in JSON."""
    text = json.dumps({**value, name: f'{secret}" {secret}'}, indent=indent)

    for shown in (text, json.dumps(text), json.dumps({"a": text})):
        assert secret not in Redaction().text(shown)


@given(st.text(), st.lists(st.text()))
def test_any_text_can_be_written_down(text: str, argv: list[str]) -> None:
    assert len(Redaction().text(text)) <= len(text) * len(H) + len(H) * 2
    assert len(Redaction().arguments(argv)) == len(argv)


ODD = [
    "key",
    "a",
    "=",
    ":",
    "key=",
    '"',
    "'",
    "\\",
    '\\"',
    " ",
    "key\\",
    "a://",
    "@",
    "x:/",
    "-",
    "key ",
    "é",
    "\n",
]


@pytest.mark.parametrize("text", ODD)
def test_no_text_takes_long(text: str) -> None:
    """Written on the loop, for a client's text: each character is looked at a few times, not once per other.

    With an expression that goes back, some of these take minutes.
    """
    Redaction(["*a*a*a*a*b"]).arguments([text * (1 << 20)] * 64)
