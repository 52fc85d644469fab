"""Where Codex keeps what belongs to a host and to its user."""

from __future__ import annotations

import os

import pytest

from holdfast.dialects.exec.places import CodexPlaces, codex_places


@pytest.mark.parametrize(
    ("there", "home", "expected"),
    [
        ("/c", "/h", "/c"),
        ("", "/h", "/h/.codex"),
        (None, "/h", "/h/.codex"),
        ("relative", "/h", "/h/.codex"),
        (None, None, None),
    ],
)
def test_the_environment_says_where_the_user_keeps_it(
    monkeypatch: pytest.MonkeyPatch, there: str | None, home: str | None, expected: str | None
) -> None:
    monkeypatch.delenv("CODEX_HOME", raising=False)
    if there is not None:
        monkeypatch.setenv("CODEX_HOME", there)

    assert codex_places(home) == CodexPlaces("/etc/codex", home, expected, os.uname().nodename)
