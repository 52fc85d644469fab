"""What a server knows of a dialect."""

from __future__ import annotations

from typing import cast

import pytest

from holdfast.dialects.dialect import Method, WireError
from holdfast.errors import Refused, UnknownMethod


def test_a_method_without_traits_is_the_plain_case() -> None:
    """Answered at once, about no process, open to a client that has not introduced itself."""
    method = Method(decode=lambda value: value, handle=lambda talk, params: params)

    assert (method.family, method.starts, method.waits, method.name_of({})) == ("", False, False, None)


def test_a_method_is_not_changed_after_it_was_made() -> None:
    method = Method(decode=lambda value: value, handle=lambda talk, params: params)

    with pytest.raises(AttributeError):
        cast("dict[str, object]", method).__setattr__("family", "exec")


def test_an_unknown_method_is_a_refusal_that_names_it() -> None:
    error = UnknownMethod("fs/nope")

    assert isinstance(error, Refused)
    assert (error.method, str(error)) == ("fs/nope", "unknown method 'fs/nope'")


def test_a_wire_error_has_no_data_unless_given() -> None:
    assert WireError(-32600, "no") == WireError(-32600, "no", None)
