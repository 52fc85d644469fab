"""What a shim needs to put a command into its sandbox: who holds which descriptor, and for how long."""

from __future__ import annotations

import gc
import os

from holdfast.host.sandbox.confinement import ConfinedCommand, Confinement, DescriptorCache, Held
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


def opened() -> int:
    return os.open("/", os.O_RDONLY)


def test_a_descriptor_is_opened_once_for_a_key() -> None:
    """To open one takes longer than to start a command."""
    with nothing_left_open():
        cache = DescriptorCache()

        first, second, other = (cache.get(key, opened, size=0) for key in ("a", "a", "b"))

        assert first is second is not other
        del first, second, other, cache
        gc.collect()


def test_a_cache_forgets_what_was_not_asked_for_longest() -> None:
    """64 are kept, however many clients there are; who still holds one that is forgotten keeps it."""
    with nothing_left_open():
        cache = DescriptorCache()
        first, second = cache.get("first", opened, size=0), cache.get("second", opened, size=0)
        for number in range(62):
            cache.get(number, opened, size=0)
        cache.get("first", opened, size=0)
        cache.get("one more", opened, size=0)

        assert cache.get("first", opened, size=0) is first
        assert cache.get("second", opened, size=0) is not second
        assert open_files()[second.fileno()] == "/"
        cache.clear()
        del first, second
        gc.collect()


def test_what_is_large_is_opened_anew_each_time() -> None:
    """A client says how large it is, and it would be kept for as long as the server runs."""
    with nothing_left_open():
        cache = DescriptorCache()

        first, second = (cache.get("key", opened, size=(64 << 10) + 1) for _ in range(2))

        assert first is not second
        del first, second
        gc.collect()


def test_nothing_was_refused_before_it_is_told() -> None:
    """And the list is each command's own."""
    first, second = ConfinedCommand(exact=True), ConfinedCommand(exact=True)

    assert first.denials == []
    assert first.denials is not second.denials
