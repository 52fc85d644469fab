"""Limits: those of the protocol, and that they fit together."""

from __future__ import annotations

from dataclasses import fields

import pytest

from holdfast.config import KIB, MIB, ConnectionLimits, EngineLimits, FileLimits, SessionLimits


@pytest.mark.parametrize(
    "limits",
    [EngineLimits(), SessionLimits(), ConnectionLimits(), FileLimits()],
    ids=lambda value: type(value).__name__,
)
def test_every_limit_is_positive(
    limits: EngineLimits | SessionLimits | ConnectionLimits | FileLimits,
) -> None:
    assert all(getattr(limits, field.name) > 0 for field in fields(limits))


def test_the_limits_that_clients_can_see_are_those_of_the_protocol() -> None:
    engine, sessions, connections = EngineLimits(), SessionLimits(), ConnectionLimits()

    assert (engine.retained_chunks, engine.stdin_chunks, engine.write_ids) == (50_000, 128, 4096)
    assert (sessions.attached_bytes, sessions.detached_seconds, sessions.closed_seconds) == (MIB, 30.0, 30.0)
    assert connections.message_bytes == 64 * MIB
    assert connections.ping_seconds == 30.0


def test_the_limits_of_files_are_those_of_the_protocol() -> None:
    files = FileLimits()

    assert (files.read_bytes, files.block_bytes) == (512 * MIB, MIB)
    assert (files.handles, files.handle_bytes, files.entries) == (128, 32, 50_000)
    assert (files.walk_depth, files.walk_directories, files.walk_entries) == (64, 10_000, 50_000)
    assert files.walk_bytes == 4 * MIB


def test_a_file_is_sent_in_pieces_whose_texts_are_one_text() -> None:
    """Base64 makes four bytes of three; and a piece fits into a fragment."""
    files, connections = FileLimits(), ConnectionLimits()

    assert files.at_once_bytes % 3 == 0
    assert files.at_once_bytes // 3 * 4 <= connections.fragment_bytes


def test_no_connection_can_use_up_the_threads_for_files() -> None:
    files = FileLimits()

    assert files.connection_calls * 4 <= files.threads


def test_an_answer_encoded_fits_into_what_a_peer_takes() -> None:
    """Base64 makes four bytes of three, and each chunk has some words around it."""
    sessions, connections = SessionLimits(), ConnectionLimits()

    assert sessions.answer_bytes * 4 // 3 + MIB < connections.message_bytes
    assert connections.fragment_bytes < 16 * MIB


def test_output_is_held_back_before_requests_are() -> None:
    """Otherwise a flood of output would keep a client from stopping it."""
    connections = ConnectionLimits()

    assert connections.output_bytes < connections.unsent_bytes


def test_more_is_kept_for_a_client_that_is_away() -> None:
    sessions, engine = SessionLimits(), EngineLimits()

    assert sessions.attached_bytes < sessions.detached_bytes <= engine.retained_bytes


def test_a_dead_peer_is_found_before_a_client_gives_up() -> None:
    connections = ConnectionLimits()

    assert connections.ping_seconds + connections.pong_seconds <= 60.0


def test_the_units_are_powers_of_two() -> None:
    assert (KIB, MIB) == (1024, 1024 * 1024)
