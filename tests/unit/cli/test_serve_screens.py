"""Whether a server knows what terminals show."""

from __future__ import annotations

import pytest

from holdfast.cli.serve_screens import NoScreens, screens_of
from holdfast.engine.screen import Screens
from holdfast.terminal import emulator


def test_screens_are_kept_where_the_extra_is() -> None:
    assert screens_of(None) is screens_of("on") is Screens.KEPT
    assert screens_of("off") is Screens.NONE


def test_without_the_extra_they_must_not_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator, "is_available", lambda: False)

    assert screens_of(None) is screens_of("off") is Screens.NONE
    with pytest.raises(NoScreens, match=r"pip install 'holdfast\[screen\]'"):
        screens_of("on")
