"""The words of the two families, as clients of the reference know them."""

from __future__ import annotations

import pytest

from holdfast.dialects.app.order import COMMAND, PROCESS
from holdfast.protocol import app as m


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PROCESS.unknown("x"), 'no active process for process handle "x"'),
        (COMMAND.unknown("x"), 'no active command/exec for process id "x"'),
        (PROCESS.over("x"), 'process "x" is no longer running'),
        (COMMAND.over("x"), 'command/exec "x" is no longer running'),
        (PROCESS.no_stdin(), "stdin streaming is not enabled for this process"),
        (COMMAND.no_stdin(), "stdin streaming is not enabled for this command/exec"),
        (PROCESS.taken("x"), 'duplicate active process handle: "x"'),
        (COMMAND.taken("x"), 'duplicate active command/exec process id: "x"'),
        (PROCESS.no_size(), "process size rows and cols must be greater than 0"),
        (COMMAND.no_size(), "command/exec size rows and cols must be greater than 0"),
        (PROCESS.size_without_terminal(), "process/spawn size requires tty: true"),
        (COMMAND.size_without_terminal(), "command/exec size requires tty: true"),
        (PROCESS.negative_timeout(-1), "process/spawn timeoutMs must be non-negative, got -1"),
        (COMMAND.negative_timeout(-5), "command/exec timeoutMs must be non-negative, got -5"),
        (PROCESS.nothing_to_write(), "process/writeStdin requires deltaBase64 or closeStdin"),
        (COMMAND.nothing_to_write(), "command/exec/write requires deltaBase64 or closeStdin"),
        (PROCESS.not_started("why"), "failed to spawn process: why"),
        (COMMAND.not_started("why"), "failed to spawn command: why"),
    ],
)
def test_a_family_has_its_own_words(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize(
    ("name", "handle", "process_id"),
    [
        ("", '""', '""'),
        ("é 日本 😀 '", '"é 日本 😀 \'"', '"é 日本 😀 \'"'),
        ('a"b\\c', '"a\\"b\\\\c"', '"a\\"b\\\\c"'),
        ("a\nb\tc\r", '"a\\nb\\tc\\r"', '"a\\nb\\tc\\r"'),
        ("\0\x01\x1f", '"\\0\\u{1}\\u{1f}"', '"\\u0000\\u0001\\u001f"'),
        ("\x08\x0c", '"\\u{8}\\u{c}"', '"\\b\\f"'),
        ("\x7f\u200b", '"\\u{7f}\\u{200b}"', '"\x7f\u200b"'),
        ("a\u0301\u00a0", '"a\\u{301}\\u{a0}"', '"a\u0301\u00a0"'),
    ],
)
def test_a_name_is_quoted_as_its_family_does_it(name: str, handle: str, process_id: str) -> None:
    """One shows what cannot be seen, the other writes JSON."""
    assert PROCESS.unknown(name).endswith(f" {handle}")
    assert COMMAND.unknown(name).endswith(f" {process_id}")


def test_the_name_is_found_in_the_params_of_each_family() -> None:
    assert PROCESS.name(m.ProcessKillParams(process_handle="h")) == "h"
    assert COMMAND.name(m.CommandTerminateParams(process_id="")) == ""
    assert COMMAND.name(m.ExecParams(command=["x"])) is None
