"""``holdfast serve --screens``: whether the server knows what terminals show."""

from __future__ import annotations

from holdfast.engine.screen import Screens
from holdfast.terminal import emulator

SCREENS_ON, SCREENS_OFF = "on", "off"


class NoScreens(Exception):
    """Screens were asked for, and cannot be kept."""

    def __str__(self) -> str:
        return "--screens on needs the extra 'screen': pip install 'holdfast[screen]'"


def screens_of(choice: str | None) -> Screens:
    """Return what becomes of screens; without a choice they are kept where the extra is installed.

    Raises:
        NoScreens: They are asked for, and the extra is not installed.
    """
    if choice == SCREENS_OFF:
        return Screens.NONE
    if emulator.is_available():
        return Screens.KEPT
    if choice == SCREENS_ON:
        raise NoScreens
    return Screens.NONE
