"""Errors as programs read them.  That each comes back as what it was is in ``client/test_foreign``."""

from __future__ import annotations

import pytest

from holdfast import errors
from holdfast.errors import Fault, HoldfastError, LimitReached, Refused, SpawnFailed, Unsupported
from holdfast.protocol.errors import data_of, error_of, kinds
from holdfast.protocol.shapes import Undecodable


def test_every_error_has_a_kind_of_its_own() -> None:
    """A program that must tell two errors apart should not have to read sentences."""
    classes = {
        name[0].lower() + name[1:]
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, HoldfastError) and not name.startswith("_")
    }

    assert classes - kinds().keys() == {"holdfastError", "refused"}


def test_a_failed_start_names_what_the_words_leave_out() -> None:
    """A missing program and a missing directory have the same words; a client need not guess."""
    missing = SpawnFailed(Fault.DIRECTORY, "/no\udcffé", "No such file or directory", number=2)

    assert data_of(missing) == {
        "kind": "spawnFailed",
        "fault": "directory",
        "subject": "/no\ufffdé",
        "reason": "No such file or directory",
        "errno": 2,
    }
    assert data_of(SpawnFailed(Fault.ARGUMENT, "env", "NUL")) == {
        "kind": "spawnFailed",
        "fault": "argument",
        "subject": "env",
        "reason": "NUL",
    }


def test_a_long_name_is_not_sent_back_whole() -> None:
    """A client knows what it sent; an error of several megabytes helps nobody."""
    data = data_of(SpawnFailed(Fault.PROGRAM, "x" * 5_000_000, "File name too long", number=36))

    assert data["subject"] == "x" * 1024


def test_a_fact_that_says_nothing_is_left_out() -> None:
    assert data_of(LimitReached("bytes", 7)) == {"kind": "limitReached", "limit": "bytes", "value": 7}
    assert data_of(LimitReached("bytes", 7, name="a.b"))["name"] == "a.b"


def test_an_error_of_a_dialect_is_of_the_kind_above_it() -> None:
    class Other(Refused):
        pass

    class Odd(HoldfastError):
        pass

    assert data_of(Undecodable("x"))["kind"] == "badRequest"
    assert (data_of(Other("x")), data_of(Odd("x"))) == ({"kind": "refused"}, {"kind": "failed"})


@pytest.mark.parametrize("data", [None, {}, {"kind": "refused"}, {"kind": "failed"}, {"kind": None}])
def test_what_has_no_class_is_left_to_the_sentences(data: object) -> None:
    assert error_of(data) is None


@pytest.mark.parametrize("number", [-1, 2**31, 2**32 - 1, 2**70, True, 2.0])
def test_a_number_that_no_system_has_is_left_to_the_sentences(number: object) -> None:
    """Words for it cannot be asked for."""
    assert error_of({"kind": "fileFailed", "errno": number}) is None
    assert str(error_of({"kind": "fileFailed", "errno": 2**31 - 1})).endswith("(os error 2147483647)")


def test_what_a_newer_server_adds_is_passed_over() -> None:
    found = error_of({"kind": "unsupported", "feature": "x", "new": {}})

    assert isinstance(found, Unsupported)
    assert found.feature == "x"
