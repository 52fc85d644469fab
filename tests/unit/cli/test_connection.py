"""What a command knows of its connection, and what it tells who leaves."""

from __future__ import annotations

import argparse

import pytest

from holdfast.cli.connection import ConnectionState, come_back, left


def test_whoever_listens_hears_each_change_and_of_one_that_came_before() -> None:
    early: list[bool] = []
    late: list[bool] = []
    connection = ConnectionState("box")
    connection.listen(early.append)
    connection.on_change(False)
    connection.listen(late.append)
    connection.on_change(True)

    assert (early, late, connection.is_lost) == ([False, True], [False, True], False)


def test_the_end_of_a_command_is_no_loss() -> None:
    """It ends its own connection, and must not say that the server is gone."""
    heard: list[bool] = []
    connection = ConnectionState("box")
    connection.listen(heard.append)
    connection.leave()
    connection.on_change(False)

    assert (heard, connection.is_lost) == ([], False)


@pytest.mark.parametrize(
    ("given", "name", "words"),
    [
        ({}, "web", "holdfast logs -f web"),
        ({"url": "ws://h:1"}, "web", "holdfast logs -f -H ws://h:1 web"),
        (
            {"url": "box", "token_file": "my token"},
            "a b",
            "holdfast logs -f -H box --token-file 'my token' 'a b'",
        ),
        ({}, "--all", "holdfast logs -f -- --all"),
    ],
)
def test_the_way_back_can_be_typed_as_it_is(given: dict[str, str], name: str, words: str) -> None:
    """The same server, also if it was chosen by an option."""
    arguments = argparse.Namespace(**{"url": None, "token_file": None, **given})

    assert come_back(arguments, name, "logs", "-f") == words


def test_what_is_left_is_said_with_and_without_a_connection() -> None:
    connection = ConnectionState("box")

    assert left("web", "BACK", connection) == left("web", "BACK") == "left web running; 'BACK' comes back"
    connection.on_change(False)
    assert left("web", "BACK", connection) == (
        "no connection to box; web is left running there; 'BACK' comes back"
    )
