"""Patterns in output: Python's own expressions are the model, as far as both understand a pattern."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.patterns import LINE, MOST_CHARACTERS, Search, SearchPattern


def found(pattern: str, *pieces: bytes) -> bytes | None:
    search = Search(SearchPattern(pattern))
    for piece in pieces:
        if (line := search.feed(piece)) is not None:
            return line
    return search.finish()


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("ready", "almost ready now"),
        (r"port \d+", "port 8080"),
        (r"^\$ $", "one\n$ "),
        ("^b$", "a\nb\nc"),
        ("^b$", "a\r\nb\r\nc"),
        ("a|b.c", "bxc"),
        ("(?:ab)+c", "ababc"),
        ("a{3}", "xaaa"),
        ("a{2,}b", "aaaab"),
        ("a{1,2}b", "aab"),
        ("x?y", "y"),
        ("[^a-z]", "abcD"),
        (r"[\d-]", "a-"),
        ("[]]", "]"),
        (r"\x41\.", "A."),
        (r"\S\s\W\D", "a  b"),
        ("(?i)Ready [a-z]", "READY X"),
        ("ünï.*t", "ünï→t"),
        (r"a\nb", "a\nb"),
        ("(a|(b|c))d", "cd"),
        ("", None),
    ][:-1],
)
def test_what_is_there_is_found(pattern: str, text: str) -> None:
    """Also if it comes byte by byte."""
    data = text.encode()

    assert found(pattern, data) is not None
    assert found(pattern, *(bytes([byte]) for byte in data)) is not None


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("ready", "reaDy"), ("a.b", "a\nb"), ("^b", "ab"), ("b$", "ba"), ("a{3}", "aa"), ("[^a]", "aa")],
)
def test_what_is_not_there_is_not_found(pattern: str, text: str) -> None:
    assert found(pattern, text.encode()) is None


PIECES = st.lists(st.text("ab\n", max_size=6).map(str.encode), max_size=5)
PATTERNS = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\n"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=8,
)


@given(PATTERNS, st.sampled_from(["", "^"]), st.sampled_from(["", "$"]), PIECES)
def test_the_verdict_is_that_of_the_slow_model(
    pattern: str, begin: str, end: str, pieces: list[bytes]
) -> None:
    """However the output was cut."""
    whole = f"{begin}(?:{pattern}){end}"
    try:
        result = found(whole, *pieces)
    except ValueError:
        assert re.search(whole.encode(), b"", re.MULTILINE)
        return

    assert (result is not None) == bool(re.search(whole.encode(), b"".join(pieces), re.MULTILINE))


def test_a_pattern_made_to_take_for_ever_takes_as_long_as_any() -> None:
    """Python's own needs more time than there is for the first of them."""
    data = b"a" * 20_000
    begin = time.process_time()

    for pattern in ("(a*)*b", "(a|a)*b", "a*a*a*a*a*b", "(?:a{0,30}){0,30}b"):
        assert found(pattern, data) is None

    assert time.process_time() - begin < 30


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("", "found in every output"),
        ("a*", "found in every output"),
        ("^", "found in every output"),
        ("$", "found in every output"),
        ("a**", "one repetition at a time"),
        ("a*?", "one repetition at a time"),
        ("*a", "nothing that"),
        ("^*a", "cannot be repeated"),
        ("(a", "ends in the middle"),
        ("a)", "without its"),
        ("[a", "ends in the middle"),
        ("a\\", "ends in the middle"),
        (r"\bword", "not supported"),
        (r"(a)\1", "not supported"),
        ("(?=a)", "only (?:...)"),
        ("[é]", "ASCII characters only"),
        ("[z-a]", "a lower and a higher"),
        (r"\xg0", "hexadecimal"),
        ("a{3,2}", "lower bound above"),
        ("(a{99}){99}", "too large"),
        ("((){9999}){9999}a", "too large"),
        ("(" * 51 + "a" + ")" * 51, "too deep"),
        ("a" * (MOST_CHARACTERS + 1), "longer than"),
    ],
)
def test_what_is_not_understood_is_refused(pattern: str, words: str) -> None:
    """A pattern that meant something else would be found too early, too late or never."""
    with pytest.raises(ValueError, match=re.escape(words)):
        SearchPattern(pattern)


def test_the_line_of_the_match_is_told() -> None:
    """With it a program reads a port, or a name, by whatever means it likes."""
    assert found(r"port \d", b"one\nlistening on po", b"rt 8080\r\nthree") == b"listening on port 8080"
    assert found("two", b"one\ntwo\nthree\n") == b"two"
    assert found("one$", b"one") == b"one"


def test_no_more_of_a_line_is_kept_than_the_end_of_it() -> None:
    """A command decides how long its lines are."""
    line = found("!", b"x" * LINE, b"y" * LINE, b"!")

    assert line == b"y" * (LINE - 1) + b"!"


def test_the_sets_that_are_remembered_are_bounded() -> None:
    """A pattern can have more of them than there are atoms; those that are forgotten are made again."""
    pattern = "(a|b)*a" + "(a|b)" * 12 + "c"
    text = (bin(0x1357_9BDF_0246_8ACE * 0x9E37_79B9_7F4A_7C15)[2:] * 40).translate({48: "a", 49: "b"})
    made = SearchPattern(pattern)
    search = Search(made)

    assert search.feed(text.encode()) is None
    assert search.feed(b"a" + b"b" * 12 + b"c") is not None
    assert len(made._known) <= 256
