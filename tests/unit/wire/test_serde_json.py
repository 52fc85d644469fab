"""What is wrong with JSON text, and where: the words and positions clients of the reference know."""

from __future__ import annotations

import contextlib

import pytest

from holdfast.wire.serde_json import MOST_NESTED, MOST_VALUES, Malformed, scan, trailing
from tests.fakes.work import steps

BEFORE = b'{"id":1,"method":"environment/status","params":'
"""47 bytes: what follows begins in column 48."""


def complaint(text: bytes) -> str:
    with pytest.raises(Malformed) as caught:
        scan(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("   ", "EOF while parsing a value at line 1 column 3"),
        ("\n", "EOF while parsing a value at line 2 column 0"),
        ("{", "EOF while parsing an object at line 1 column 1"),
        ("[", "EOF while parsing a list at line 1 column 1"),
        ('{"', "EOF while parsing a string at line 1 column 2"),
        ('{"a', "EOF while parsing a string at line 1 column 3"),
        ('{"a"', "EOF while parsing an object at line 1 column 4"),
        ('{"a":', "EOF while parsing a value at line 1 column 5"),
        ('{"a":1', "EOF while parsing an object at line 1 column 6"),
        ('{"a":1,', "EOF while parsing a value at line 1 column 7"),
        ("[1", "EOF while parsing a list at line 1 column 2"),
        ("[1,", "EOF while parsing a value at line 1 column 3"),
        ("not json", "expected ident at line 1 column 2"),
        ("nul", "EOF while parsing a value at line 1 column 3"),
        ("nulL", "expected ident at line 1 column 4"),
        ("tru", "EOF while parsing a value at line 1 column 3"),
        ("truX", "expected ident at line 1 column 4"),
        ("fals", "EOF while parsing a value at line 1 column 4"),
        ("n", "EOF while parsing a value at line 1 column 1"),
        ('"', "EOF while parsing a string at line 1 column 1"),
        ("{,}", "key must be a string at line 1 column 2"),
        ('{"id" 1}', "expected `:` at line 1 column 7"),
        ('{"id":}', "expected value at line 1 column 7"),
        ("{id:1}", "key must be a string at line 1 column 2"),
        ("{'id':1}", "key must be a string at line 1 column 2"),
        ("{1:2}", "key must be a string at line 1 column 2"),
        ('{"id":1,"method":"environment/status",}', "trailing comma at line 1 column 39"),
        ("[1,]", "trailing comma at line 1 column 4"),
        ("[,1]", "expected value at line 1 column 2"),
        ("[1 2]", "expected `,` or `]` at line 1 column 4"),
        ('{"a":1 "b":2}', "expected `,` or `}` at line 1 column 8"),
        ('{"a":[1,2}', "expected `,` or `]` at line 1 column 10"),
        ('{"a":{"b":1]', "expected `,` or `}` at line 1 column 12"),
        ("]", "expected value at line 1 column 1"),
        ("}", "expected value at line 1 column 1"),
        ("//x\n{}", "expected value at line 1 column 1"),
        ('{"a":/*x*/1}', "expected value at line 1 column 6"),
        ('\f{"id":1}', "expected value at line 1 column 1"),
        ('\u00a0{"id":1}', "expected value at line 1 column 1"),
        ("\0", "expected value at line 1 column 1"),
        ('\ufeff{"id":1}', "expected value at line 1 column 1"),
    ],
)
def test_a_fault_of_structure_is_named_where_it_shows(text: str, words: str) -> None:
    assert complaint(text.encode()) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("01", "invalid number at line 1 column 49"),
        ("-", "invalid number at line 1 column 49"),
        ("1.", "invalid number at line 1 column 50"),
        (".5", "expected value at line 1 column 48"),
        ("-.5", "invalid number at line 1 column 49"),
        ("1e", "invalid number at line 1 column 50"),
        ("1e+", "invalid number at line 1 column 51"),
        ("1.5e-x", "invalid number at line 1 column 53"),
        ("+1", "expected value at line 1 column 48"),
        ("NaN", "expected value at line 1 column 48"),
        ("Infinity", "expected value at line 1 column 48"),
        ("-Infinity", "invalid number at line 1 column 49"),
        ("-01", "invalid number at line 1 column 50"),
        ("00", "invalid number at line 1 column 49"),
        ("0x10", "expected `,` or `}` at line 1 column 49"),
        ("1_000", "expected `,` or `}` at line 1 column 49"),
        ("--1", "invalid number at line 1 column 49"),
        ("1e5.5", "expected `,` or `}` at line 1 column 51"),
        ("1.e5", "invalid number at line 1 column 50"),
        ("0e", "invalid number at line 1 column 50"),
        ("1a", "expected `,` or `}` at line 1 column 49"),
    ],
)
def test_a_fault_of_a_number_is_named_where_it_shows(number: str, words: str) -> None:
    assert complaint(BEFORE + number.encode() + b"}") == words


@pytest.mark.parametrize("number", ["-", "1.", "1e", "1e+", "-0.", "12.5E-"])
def test_a_number_that_breaks_off_with_the_text_is_an_end_of_the_text(number: str) -> None:
    assert complaint(number.encode()) == f"EOF while parsing a value at line 1 column {len(number)}"


@pytest.mark.parametrize(
    "number", ["0", "-0", "1", "-10", "0.1", "1E5", "1e400", "-1e400", "1.25e-10", "0e0", "1" * 400]
)
def test_every_json_number_passes(number: str) -> None:
    assert scan(number.encode() + b" ") == len(number)


CONTROL = "control character (\\u0000-\\u001F) found while parsing a string"


@pytest.mark.parametrize(
    ("string", "words"),
    [
        (rb'"\ud800"', "unexpected end of hex escape at line 1 column 55"),
        (rb'"\ud800x"', "unexpected end of hex escape at line 1 column 55"),
        (rb'"\ud800\n"', "unexpected end of hex escape at line 1 column 56"),
        (rb'"\udc00"', "lone leading surrogate in hex escape at line 1 column 54"),
        (rb'"\ud800\u0041"', "lone leading surrogate in hex escape at line 1 column 60"),
        (rb'"\ud800\ud800"', "lone leading surrogate in hex escape at line 1 column 60"),
        (b'"\x01"', f"{CONTROL} at line 1 column 49"),
        (b'"a\nb"', f"{CONTROL} at line 2 column 0"),
        (b'"a\tb"', f"{CONTROL} at line 1 column 50"),
        (rb'"\x41"', "invalid escape at line 1 column 50"),
        (rb'"\a"', "invalid escape at line 1 column 50"),
        (rb'"\u12"', "invalid escape at line 1 column 54"),
        (rb'"\uzzzz"', "invalid escape at line 1 column 54"),
        (b"'x'", "expected value at line 1 column 48"),
        (b'"\xff"', "invalid unicode code point at line 1 column 50"),
        (b'"ab\xc3"', "invalid unicode code point at line 1 column 52"),
        (b"\xff", "expected value at line 1 column 48"),
    ],
)
def test_a_fault_of_a_string_is_named_where_it_shows(string: bytes, words: str) -> None:
    """The column of a found byte is its own; an escape is judged once it is complete."""
    assert complaint(BEFORE + string + b"}") == words


@pytest.mark.parametrize(
    "string", [b'"abc', b'"abc\\', b'"\\u1', b'"\\u12f', b'"\\ud800', b'"\\ud800\\', b'"\\ud800\\udc']
)
def test_a_string_that_breaks_off_is_an_end_of_the_text(string: bytes) -> None:
    assert complaint(string) == f"EOF while parsing a string at line 1 column {len(string)}"


def test_a_key_is_judged_like_any_string() -> None:
    assert complaint(b'{"\xff":1}') == "invalid unicode code point at line 1 column 4"
    assert complaint(b'{"id":1,\xff}') == "key must be a string at line 1 column 9"


@pytest.mark.parametrize(
    "text",
    [
        '"😀"',
        r'"\ud83d\ude00"',
        r'"\"\\\/\b\f\n\r\t\u00e9"',
        '"\x7f"',
        "[]",
        "{}",
        '{"a":[1,{"b":[]}]}',
        "true",
    ],
)
def test_a_good_value_ends_where_it_ends(text: str) -> None:
    data = text.encode()

    assert scan(b" \t\r\n" + data + b" rest") == 4 + len(data)


@pytest.mark.parametrize(
    ("text", "key", "position"),
    [
        ('{"id":1,"id":2}', "id", "line 1 column 12"),
        ('{"id":1,"method":"x","id":1}', "id", "line 1 column 25"),
        ('{"a":1,"a" :2}', "a", "line 1 column 11"),
        ('{"a":1,"a"   :   2}', "a", "line 1 column 13"),
        ('{"a":1,"a":}', "a", "line 1 column 10"),
        ('{"a":1,"a"', "a", "line 1 column 10"),
        ('{"a":1,"a" x', "a", "line 1 column 11"),
        ('{"a":1,"a"}', "a", "line 1 column 11"),
        ('{"a":1,"a"  }', "a", "line 1 column 13"),
        ('{"a":1,"a"  ', "a", "line 1 column 12"),
        ('{"a":1,"a"\n}', "a", "line 2 column 1"),
        ('{"a":1,"a"]', "a", "line 1 column 10"),
        ('{"x":{"a":1,"a"}}', "a", "line 1 column 16"),
        ('{"a":[{"b":1,"b":2}]}', "b", "line 1 column 16"),
        (r'{"a":1,"\u0061":2}', "a", "line 1 column 15"),
        (r'{"\u0061":1,"a":2}', "a", "line 1 column 15"),
        ('{"":1,"":2}', "", "line 1 column 8"),
        ('{"k`q":1,"k`q":2}', "k`q", "line 1 column 14"),
        (r'{"a\n":1,"a\n":2}', "a\n", "line 1 column 14"),
        (r'{"\u0000":1,"\u0000":2}', "\0", "line 1 column 20"),
        ('{"é":1,"é":2}', "é", "line 1 column 12"),
        ('{"ééé":1,"a":1,"a":2}', "a", "line 1 column 21"),
        ('{\n  "a":1,\n  "a":2}', "a", "line 3 column 5"),
        ('{\r\n"a":1,\r\n"a":2\r\n}', "a", "line 3 column 3"),
        ('{"a":1,\n\n\n"b":{"c":1,\n "c"\n:1}}', "c", "line 6 column 0"),
        ('[{"a":1,"a":2}]', "a", "line 1 column 11"),
        ('{"a":1,"a":{"b":1,"b":2}}', "a", "line 1 column 10"),
        ('{"' + "k" * 300 + '":1,"' + "k" * 300 + '":1}', "k" * 300, "line 1 column 608"),
    ],
)
def test_a_repeated_key_is_reported_as_soon_as_it_is_read(text: str, key: str, position: str) -> None:
    """Two readers of one text may each take another of two equal keys; so nobody gets such a text."""
    assert complaint(text.encode()) == f"duplicate JSON object key `{key}` at {position}"


def test_a_fault_before_a_repeated_key_comes_first() -> None:
    assert complaint(b'{"a":nul,"b":1,"b":2}') == "expected ident at line 1 column 9"


@pytest.mark.parametrize("text", [b'{"a":1,"A":2}', b'{"a":[1,{"b":1},{"b":2}]}', b'{"a":{"a":{"a":1}}}'])
def test_equal_keys_of_different_objects_are_fine(text: bytes) -> None:
    assert scan(text) == len(text)


def test_containers_may_be_nested_up_to_the_limit() -> None:
    text = b"[" * MOST_NESTED + b"]" * MOST_NESTED

    assert scan(text) == len(text)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        (b"[" * 128 + b"]" * 128, 128),
        (b"[" * 100_000, 128),
        (b'{"a":' * 128, 636),
        (BEFORE + b"[" * 127 + b"]" * 127 + b"}", 174),
        (BEFORE + b'{"a":' * 127, 678),
    ],
)
def test_the_bracket_that_nests_too_deeply_is_named(text: bytes, column: int) -> None:
    """Nobody may make us recurse, or keep, without bound."""
    assert complaint(text) == f"recursion limit exceeded at line 1 column {column}"


TOO_MANY = "JSON-RPC message exceeds the limit of 262144 JSON values at line"


@pytest.mark.slow
@pytest.mark.timeout(60)  # Measuring coverage makes it ten times slower.
def test_a_text_of_as_many_values_as_allowed_passes() -> None:
    text = b"[" + b",".join([b"1"] * (MOST_VALUES - 1)) + b"]"

    assert scan(text) == len(text)


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("extra", "position"),
    [(b"x", "1 column 524287"), (b"\n1]", "2 column 0")],
)  # fmt: skip
def test_one_value_too_many_is_refused_before_it_is_looked_at(extra: bytes, position: str) -> None:
    text = b"[" + b"1," * (MOST_VALUES - 1) + extra

    assert complaint(text) == f"{TOO_MANY} {position}"


@pytest.mark.parametrize(
    ("tail", "position"),
    [(b"x", "line 1 column 3"), (b" \n\nx", "line 3 column 1"), (b"\0", "line 1 column 3")],
)
def test_what_comes_after_the_value_is_named(tail: bytes, position: str) -> None:
    with pytest.raises(Malformed) as caught:
        trailing(b"{}" + tail, 2)

    assert str(caught.value) == f"trailing characters at {position}"


def test_blanks_may_come_after_the_value() -> None:
    trailing(b"{} \t\r\n", 2)


MANY = 50_000


@pytest.mark.parametrize(
    "value",
    [
        b'"%b"' % (b"\\n" * MANY),
        b'"%b"' % (b"a\\u00e9" * MANY),
        b'"%b"' % (b"\\ud83d\\ude00" * MANY),
        b'"%b\\x"' % (b"\\n" * MANY),
        b"9" * MANY + b".",
        b"[%b1]" % (b"1, " * MANY),
        b"[%b1]" % (b"[],{} ," * MANY),
        b'[%b"x"]' % (b'"a",true,' * MANY),
    ],
    ids=["escapes", "hex escapes", "pairs", "a bad one", "digits", "numbers", "containers", "scalars"],
)
def test_what_is_plain_to_see_is_passed_over_in_few_steps(value: bytes) -> None:
    """The time of everybody goes by while one client's text is read."""

    def work() -> None:
        with contextlib.suppress(Malformed):
            scan(b'{"a":%b}' % value)

    assert steps(work) < MANY / 5


@pytest.mark.parametrize("name", [b"a", b"\\u0061"])
@pytest.mark.parametrize("value", [b"1", b"[1]"])
def test_a_repeated_key_is_found_among_simple_members(name: bytes, value: bytes) -> None:
    """However it was written."""
    words = complaint(b'{"b":1,"a":1,"c":2,"%b":%b,"d":3}' % (name, value))

    assert words.startswith("duplicate JSON object key `a` at line 1 column ")


def test_simple_members_do_not_hide_what_is_nested_too_deeply() -> None:
    """An empty array is one level too."""
    assert complaint(b"[" * MOST_NESTED + b"1,[]").startswith("recursion limit exceeded")
