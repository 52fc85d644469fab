"""What a shim needs to put a command into its sandbox: who holds which descriptor, and for how long."""

from __future__ import annotations

import gc
import os

from holdfast.host.sandbox.confinement import ConfinedCommand, Confinement, Held
from tests.fakes.process import nothing_left_open, open_files


def test_a_descriptor_is_open_for_as_long_as_somebody_has_it() -> None:
    """A confinement may be used by a start while the confiner has long forgotten it."""
    with nothing_left_open():
        held = Held(os.open("/", os.O_RDONLY))
        confinement = Confinement(b"", ruleset=held)
        number = held.fileno()
        del held
        gc.collect()
        assert open_files()[number] == "/"
        del confinement
        gc.collect()


def test_at_most_one_descriptor_is_handed_over() -> None:
    """A ruleset or what bubblewrap is told: no command has both."""
    with nothing_left_open():
        held = Held(os.open("/", os.O_RDONLY))
        assert Confinement(b"", ruleset=held).handed is held
        assert Confinement(b"", arguments=held).handed is held
        assert Confinement(b"").handed is None
        del held


def test_nothing_was_refused_before_it_is_told() -> None:
    """And the list is each command's own."""
    first, second = ConfinedCommand(exact=True), ConfinedCommand(exact=True)

    assert first.denials == []
    assert first.denials is not second.denials
