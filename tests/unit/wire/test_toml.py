"""TOML as it is written."""

from __future__ import annotations

import math
import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.wire.toml import written

EXAMPLE = """\
z = 1
"quoted key" = "a\\"b\\\\c\\n\\t\\u0001é"
off = false
dates = [1979-05-27T00:32:00.999999-07:00, 1979-05-27T07:32:00, 1979-05-27T07:32:00Z, 07:32:00, 1979-05-27]
floats = [1.0, -0.0, inf, -inf, 1e+100]
mixed = [[], { a = 1, "b c" = {} }]

[table]
k = -5

[table.empty]

[deep.only.nested]
x = 1

[[list]]
x = 1

[list.sub]
y = 2

[[list]]

[[list]]
x = 3

[[list.inner]]
q = 1
"""

LEAVES = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.floats(allow_nan=False),
    # Not lone surrogates, which no text of TOML can have.
    st.text(st.characters(exclude_categories=["Cs"])),
    st.dates(),
    st.times(),
    st.datetimes(timezones=st.none()),
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab .é"), inner, max_size=3)
)


def test_a_table_is_written_as_people_write_it() -> None:
    assert written(tomllib.loads(EXAMPLE)) == EXAMPLE


@given(st.dictionaries(st.text("ab .'\"\n"), VALUES, max_size=4))
def test_what_is_written_reads_the_same(table: dict[str, Any]) -> None:
    assert tomllib.loads(written(table)) == table


def test_what_is_no_number_is_written() -> None:
    assert math.isnan(tomllib.loads(written({"x": math.nan}))["x"])
