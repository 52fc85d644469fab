"""Words and entries: what is packed is what is unpacked."""

from __future__ import annotations

import pytest

from holdfast.engine.durable import layout
from holdfast.engine.durable.layout import WriteFlag
from holdfast.host.arena import CELL, SIZES, SLOT


def test_a_slot_has_room_for_its_words_and_four_entries() -> None:
    assert SIZES[SLOT] == layout.WORDS * 8
    assert layout.INLINE + (layout.INLINE_MASK + 1) * layout.ENTRY_SIZE // 8 == layout.WORDS
    assert layout.FLAGS < layout.INLINE


def test_the_words_of_a_slot_are_apart() -> None:
    names = (
        "STATE KEY FACTS EXIT CAUSE INDEX HEAD TAIL BLOCK STREAM EXIT_SEQ CLOSED_SEQ PID STARTED EXITED_AT"
    )
    names += " CLOSED_AT KILL_AT ACTIVE ACKED IN_TABLE IN_COUNT IN_TAIL IN_FLAGS FLAGS INLINE"
    words = [getattr(layout, name) for name in names.split()]

    assert sorted(set(words)) == words == list(range(len(words)))


@pytest.mark.parametrize("head", [0, 1, 5, (1 << 32) - 1, 1 << 32, (1 << 40) + 3])
@pytest.mark.parametrize("at", [SIZES[CELL], 1 << 18, (1 << 40) - SIZES[CELL]])
def test_a_block_and_its_first_entry_are_one_word(at: int, head: int) -> None:
    word = layout.block_word(at, head)

    assert 0 < word < 1 << 64
    assert layout.block_at(word) == at
    assert layout.is_first(word, head)
    assert not layout.is_first(word, head + 1)


@pytest.mark.parametrize("exit_seq", range(7))
def test_numbers_and_entries_lead_to_each_other_around_the_exit(exit_seq: int) -> None:
    numbers = [layout.number_of(entry, exit_seq) for entry in range(8)]

    assert numbers == [seq for seq in range(1, 10) if seq != exit_seq][:8]
    for seq in range(8):
        first = next(entry for entry in range(9) if layout.number_of(entry, exit_seq) > seq)
        assert layout.first_above(seq, exit_seq) == first


@pytest.mark.parametrize("length", [0, 1, 1 << 18, (1 << 32) - 1])
@pytest.mark.parametrize("flags", [0, WriteFlag.NAMED, WriteFlag.NAMED | WriteFlag.DIGEST | WriteFlag.MORE])
def test_the_facts_of_a_write_are_one_word(length: int, flags: int) -> None:
    word = layout.write_word(length, flags, 48)

    assert 0 < word < 1 << 64
    assert layout.read_write_word(word) == (length, flags, 48)


@pytest.mark.parametrize("write_id", ["", "a", "x" * 48, "\ud800", "ä" * 24])
def test_a_short_identifier_is_stored_as_it_is(write_id: str) -> None:
    stored, flags = layout.stored_identifier(write_id)

    assert layout.restored_identifier(stored, flags) == (write_id, len(write_id))


@pytest.mark.parametrize("write_id", ["x" * 49, "ä" * 25, "y" * 100_000])
def test_a_long_identifier_is_told_by_its_digest(write_id: str) -> None:
    stored, flags = layout.stored_identifier(write_id)

    assert len(stored) <= layout.IDENTIFIER_MOST
    assert layout.restored_identifier(stored, flags) == (layout.digest_of(write_id), len(write_id))
    assert layout.digest_of(write_id) != layout.digest_of(write_id + "x")


@pytest.mark.parametrize("last", [b"", b"\n\x04", b"\0\0", b"abcdef"])
def test_the_last_bytes_are_a_part_of_a_word(last: bytes) -> None:
    assert layout.unpacked_last(layout.packed_last(last) | 255) == last
    assert layout.packed_last(last) & 255 == 0


@pytest.mark.parametrize("at", [None, 0.0, 1.5, 1e9, -3.25])
def test_a_time_is_a_word(at: float | None) -> None:
    word = layout.time_word(at)

    assert layout.word_time(word) == at
    assert (word == 0) == (at is None)
